INSERT INTO meta (name, value) VALUES ('controls_version', '0')

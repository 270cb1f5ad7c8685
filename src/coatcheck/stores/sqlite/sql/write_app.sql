INSERT INTO meta (name, value) VALUES ('app', :app)

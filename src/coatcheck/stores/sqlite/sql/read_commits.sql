SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'commits'

SELECT to_regclass('coatcheck.meta') IS NOT NULL

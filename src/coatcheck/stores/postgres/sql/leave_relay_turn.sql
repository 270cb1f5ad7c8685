DELETE FROM relay_turn WHERE holder = $1

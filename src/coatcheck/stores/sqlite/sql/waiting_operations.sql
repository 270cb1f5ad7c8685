SELECT DISTINCT operation FROM turn

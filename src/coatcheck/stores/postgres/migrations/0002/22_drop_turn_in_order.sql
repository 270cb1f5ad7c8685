DROP INDEX turn_in_order

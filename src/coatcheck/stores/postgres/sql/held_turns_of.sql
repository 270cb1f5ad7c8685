SELECT operation, tenant FROM turn WHERE is_held AND tenant = $1

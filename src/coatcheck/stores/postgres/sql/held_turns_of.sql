SELECT operation, tenant FROM turn WHERE is_held AND tenant = ANY ($1::text[])

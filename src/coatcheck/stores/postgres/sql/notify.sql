SELECT pg_notify($1, hint) FROM unnest($2::text[]) AS h (hint)

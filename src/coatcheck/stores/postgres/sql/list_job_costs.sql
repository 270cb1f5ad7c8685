SELECT kind, charged, spent FROM job_cost WHERE job_id = $1 ORDER BY kind

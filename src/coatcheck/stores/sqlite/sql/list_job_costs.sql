SELECT kind, charged, spent FROM job_cost WHERE job_id = :job_id ORDER BY kind

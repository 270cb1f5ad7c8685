-- POSTs a small report with each request. Arguments: a number no other run has; "key" for an
-- Idempotency-Key of its own with each request; the mean pause in ms before a connection's next request (0: none); and,
-- where there is one, the tenant's API key.
local body = '{"branch":"north-hall","shelves":42,"tags":["quarterly","draft"]}'
local threads = 0

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "report.lua")

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
  run, with_key, pause_ms = tonumber(args[1]), args[2] == "key", tonumber(args[3])
  count = 0
  math.randomseed(run + number)
  local head = "POST " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.headers["Host"] ..
    "\r\nContent-Type: application/json\r\nContent-Length: " .. #body
  if args[4] then head = head .. "\r\nAuthorization: Bearer " .. args[4] end
  plain = head .. "\r\n\r\n" .. body
  before, after = head .. "\r\nIdempotency-Key: ", "\r\n\r\n" .. body
  if pause_ms > 0 then
    -- Pauses as in a Poisson stream.
    delay = function() return math.floor(0.5 - pause_ms * math.log(1 - math.random())) end
  end
end

function request()
  if not with_key then return plain end
  count = count + 1
  return before .. string.format("%08x-%d-%d-%d", math.random(0, 0x7fffffff), run, number, count) .. after
end

-- GETs one of many jobs with each request. Arguments: a file of paths, one a line; the entity tag to send.
dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "report.lua")

function init(args)
  local tag = args[2]
  requests_ready = {}
  for path in io.lines(args[1]) do
    local head = "GET " .. path .. " HTTP/1.1\r\nHost: " .. wrk.headers["Host"]
    if tag then head = head .. "\r\nIf-None-Match: " .. tag end
    requests_ready[#requests_ready + 1] = head .. "\r\n\r\n"
  end
  math.randomseed(7)
end

function request()
  return requests_ready[math.random(#requests_ready)]
end

-- Takes tokens of several token buckets at once, on this server's own clock, which all processes share.
--
-- KEYS: the buckets of all groups, one group after the other.
-- ARGV: for each group how many buckets it has, how many tokens of each are wanted (less than 0: given back), and
--       then rate and burst of each bucket.
-- Answers for each group how many tokens it got, and then what is missing from each of its buckets.
--
-- A bucket is kept as what is missing from a full one and since when, for as long as anything is missing.
local YEAR_MS = 31536000000
local SHORTAGE = 0.000001

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local function missing_from(key, rate, burst)
    local kept = redis.call('GET', key)
    if not kept then
        return 0
    end
    local missing, at = string.match(kept, '^(%S+) (%S+)$')
    return math.max(math.min(tonumber(missing), burst) - math.max(now - tonumber(at), 0) * rate, 0)
end

local function keep(key, missing, rate)
    if missing <= 0 or rate <= 0 then
        redis.call('DEL', key)
        return
    end
    local full_in_ms = math.min(math.ceil(missing / rate * 1000), YEAR_MS)
    redis.call('SET', key, string.format('%.9f %.6f', missing, now), 'PX', string.format('%.0f', full_in_ms))
end

local answer, key_at, arg_at = {}, 1, 1
while arg_at <= #ARGV do
    local buckets, got = tonumber(ARGV[arg_at]), tonumber(ARGV[arg_at + 1])
    local missing = {}
    for bucket = 1, buckets do
        local rate, burst = tonumber(ARGV[arg_at + bucket * 2]), tonumber(ARGV[arg_at + bucket * 2 + 1])
        missing[bucket] = missing_from(KEYS[key_at + bucket - 1], rate, burst)
        if rate <= 0 or burst <= 0 then
            got = math.min(got, 0)
        else
            got = math.min(got, math.max(math.floor(burst - missing[bucket] + SHORTAGE), 0))
        end
    end
    answer[#answer + 1] = string.format('%.0f', math.max(got, 0))
    for bucket = 1, buckets do
        missing[bucket] = math.max(missing[bucket] + got, 0)
        if got ~= 0 then
            keep(KEYS[key_at + bucket - 1], missing[bucket], tonumber(ARGV[arg_at + bucket * 2]))
        end
        answer[#answer + 1] = string.format('%.9f', missing[bucket])
    end
    key_at, arg_at = key_at + buckets, arg_at + 2 + buckets * 2
end
return answer

# Sidekiq without its paid limits. RATE "100": what one writes then, a rate in the job that puts a denied one back for later.
require "json"
require "sidekiq"

way, port = %w[enqueue pace work].include?(ARGV[0]) ? ARGV : ["job", ENV["PEER_PORT"]]
[:configure_server, :configure_client].each { |side| Sidekiq.send(side) { |c| c.redis = {url: "redis://127.0.0.1:#{port}/0"} } }
Sidekiq.logger.level = Logger::ERROR

def now = Process.clock_gettime(Process::CLOCK_REALTIME)

def job(type, i, t)
  made = {"type" => type, "id" => i, "t" => t, "to" => "user#{i}@example.com", "body" => ""}
  made.merge("body" => "x" * [0, 120 - JSON.generate(made).size].max)
end

RECORD = ENV["RECORD"] && File.open(ENV["RECORD"], "ab")
RATE = ENV["PEER_RATE"].to_f
# The generic cell rate algorithm, burst 1: 0, or the microseconds until the next slot.
GCRA = <<~LUA
  local time = redis.call('TIME')
  local now, gap = time[1] * 1e6 + time[2], 1e6 / ARGV[1]
  local tat = math.max(now, tonumber(redis.call('GET', KEYS[1]) or 0))
  if tat > now then return tat - now end
  redis.call('SET', KEYS[1], string.format('%.0f', tat + gap), 'PX', math.ceil(gap / 1000) + 1)
  return 0
LUA

class U
  include Sidekiq::Worker
  sidekiq_options retry: false
  def perform(made) = RECORD.syswrite([now, made["t"], made["type"] == "T" ? 1.0 : 0.0].pack("E3"))
end

class T < U
  def perform(made)
    wait = RATE > 0 ? Sidekiq.redis { |r| r.eval(GCRA, ["gate"], [RATE]) } : 0
    wait > 0 ? T.perform_in(wait / 1e6, made) : super
  end
end

case way
when "enqueue"
  n, type, begun = ARGV[2].to_i, ARGV[3], now
  (0...n).each_slice(1000) do |slice|
    Sidekiq::Client.push_bulk("class" => type, "retry" => false, "args" => slice.map { |i| [job(type, i, begun)] })
  end
  puts now - begun
when "pace"
  begun = now
  ARGV[2].to_i.times do |i|
    left = begun + i / ARGV[3].to_f - now
    sleep left if left > 0
    U.perform_async(job("U", i, now))
  end
when "work"
  ENV.update("PEER_PORT" => port, "PEER_RATE" => ARGV[3])
  exec "sidekiq", "-r", File.expand_path(__FILE__), "-c", ARGV[2], "-q", "default", "-t", "1"
end

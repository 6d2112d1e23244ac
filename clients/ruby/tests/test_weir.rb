# What needs no server: documents, refusals before they are sent, the words of Redis, denials, jobs, ActiveJob, the test mode.
$LOAD_PATH.unshift(File.join(__dir__, "../lib"))
require "minitest/autorun"
require "active_job"
require "weir"

# A connection that answers what it was given, and keeps what it was told.
class Scripted
  attr_reader :told

  def initialize(*answers)
    @answers, @told = answers, []
  end

  def call(*words)
    @told << words
    answer = @answers.shift
    answer.is_a?(Exception) ? raise(answer) : answer
  end
end

ABOUT = JSON.generate(protocol: 1, verbs: %w[enqueue job take bulk batch].to_h { |verb| [verb, ["FCALL", "f", "1", "k"]] })
GONE = Redis::CommandError.new("ERR Function not found")

class DocumentsTest < Minitest::Test
  def refused(member, args = nil, **options)
    error = assert_raises(Weir::Invalid) { Weir::Documents.write(Weir::Documents.job("mail", args, **options)) }
    member ? assert_equal(member, error.member) : assert_nil(error.member)
  end

  def test_what_is_no_json_is_refused_before_it_is_sent
    deep = []
    2000.times { deep = [deep] }
    [Float::NAN, Float::INFINITY, "\xff", {"\xff" => 1}, Object.new, 1r, deep, Time.now].each { |args| refused("args", args) }
    refused("meta", meta: [-Float::INFINITY])
    assert_raises(ArgumentError) { Weir::Documents.job("mail", 1, delya: 5) }
  end

  def test_text
    text = Weir::Documents.write(Weir::Documents.job("mail", {a: "<ü\u2028>", n: 2**63 - 1}, id: "j"))
    assert_equal %({"id":"j","type":"mail","args":{"a":"<ü\u2028>","n":9223372036854775807}}), text
    assert_equal 1800000000.5, Weir::Documents.job("mail", 1, at: Time.at(1800000000, 500, :millisecond))[:at]
    made = Weir::Documents.job("mail", nil)
    assert_match(/\A[a-z0-9]{16}\z/, made[:id])
    assert_equal 60, made[:remember]
  end

  def test_refusals
    {"invalid" => Weir::Invalid, "missing" => Weir::Missing, "closed" => Weir::Closed, "rights" => Weir::Refused,
     "unavailable" => Weir::Unreachable, "new one" => Weir::Error}.each do |kind, error|
      assert_raises(error) { Weir::Documents.read(JSON.generate(refused: kind, why: "it is", more: 1)) }
    end
    ["", "OK", "[]", "7", "<html>"].each { |text| assert_raises(Weir::Unreachable, text) { Weir::Documents.read(text) } }
  end
end

class RedisTest < Minitest::Test
  # A client that does not sleep.
  class Hasty < Weir::Client
    def rest(_) = nil
  end

  def client(*answers)
    @redis = Scripted.new(*answers)
    Hasty.new(redis: @redis, namespace: "ns")
  end

  def test_words_are_read_once
    q = client(ABOUT, '{"id":"j","new":true}', '{"id":"k","new":false}')
    assert q.enqueue("mail", id: "j").new?
    refute q.enqueue("mail", id: "k").new?
    assert_equal ["HGET", "ns:{0}:about", "protocol"], @redis.told[0]
    assert_equal ["FCALL", "f", "1", "k", "enqueue", '{"id":"j","type":"mail"}'], @redis.told[1]
    assert_equal 3, @redis.told.size
  end

  def test_another_version_is_read_once
    q = client(ABOUT, '{"id":"j","new":true}', GONE, ABOUT.gsub('"f"', '"g"'), '{"id":"j","new":true}', GONE, ABOUT, GONE)
    q.enqueue("mail")
    q.enqueue("mail")
    assert_equal "g", @redis.told.last[1]
    assert_raises(Weir::Unreachable) { q.enqueue("mail") }
    assert_raises(Weir::Unreachable) { client(ABOUT, GONE).enqueue("mail") }
  end

  def test_no_weir_and_no_right
    [nil, "", "oops", '{"protocol":2}', '{"protocol":1,"verbs":{}}'].each { |about| assert_raises(Weir::Unreachable) { client(about).job("j") } }
    assert_raises(Weir::Refused) { client(Redis::CommandError.new("NOPERM no")).job("j") }
    assert_raises(Weir::Unreachable) { client(Redis::CannotConnectError.new("refused")).job("j") }
    assert_raises(Weir::Unreachable) { client(OpenSSL::SSL::SSLError.new("SSL_connect: certificate verify failed")).enqueue("mail") }
    assert_raises(Weir::Unreachable) { client(ABOUT, Redis::CommandError.new("OOM full")).job("j") }
  end

  def test_elsewhere
    q = client(ABOUT, '{"elsewhere":"ns:{3}:"}', ABOUT.gsub('"k"', '"k3"'), '{"id":"j","new":true}')
    q.enqueue("mail")
    assert_equal %w[FCALL f 1 k3], @redis.told.last[0, 4]
  end

  def test_a_lost_answer_is_asked_for_again
    lost = Redis::ConnectionError.new("cut")
    q = client(ABOUT, lost, lost, Redis::CannotConnectError.new("refused"), '{"id":"m","new":false}')
    assert_equal "m", q.enqueue("mail", 1, id: "m")
    assert_equal 1, @redis.told.drop(1).uniq.size
    cut = OpenSSL::SSL::SSLError.new("SSL_read: unexpected eof while reading")
    assert_equal "m", client(ABOUT, cut, '{"id":"m","new":false}').enqueue("mail", 1, id: "m")
    q = client(ABOUT, *[lost] * 1000)
    clock = 0
    q.define_singleton_method(:monotonic) { clock += 1 }
    assert_equal "m", assert_raises(Weir::Unknown) { q.enqueue("mail", 1, id: "m") }.id
  end

  def test_denials
    denied = '{"allowed":false,"limit":1,"remaining":0,"reset_after":9,"retry_after":0.5}'
    q, now = client(ABOUT, *[denied] * 4), 100.0
    q.define_singleton_method(:clock) { now }
    q.take("l")
    now += 0.2
    assert_in_delta 0.3, q.take("l").retry_after, 1e-6
    assert_equal 2, @redis.told.size
    q.take("l", fresh: true)
    now += 0.6
    q.take("l")
    assert_equal 4, @redis.told.size
    denials = Weir::Denials.new
    3000.times { |n| denials.keep(n, now, JSON.parse(denied)) }
    assert_equal Weir::Denials::MOST, denials.size
  end

  def test_in_line
    place = '{"allowed":false,"limit":1,"remaining":0,"reset_after":9,"retry_after":5,"place":"p","ask_after":5}'
    q, now = client(ABOUT, place, place, '{"left":true}'), 0.0
    q.define_singleton_method(:clock) { now }
    q.define_singleton_method(:rest) { |seconds| (now += seconds) > 9 ? raise(Interrupt) : nil }
    assert_raises(Interrupt) { q.take("l", wait: 30) }
    documents = @redis.told.drop(1).map { |words| JSON.parse(words.last) }
    assert_equal [{"limit" => "l", "cost" => 1, "wait" => 30}, {"limit" => "l", "cost" => 1, "wait" => 25.0, "place" => "p"},
                  {"limit" => "l", "cost" => 1, "place" => "p", "leave" => true}], documents
  end
end

class BulkTest < Minitest::Test
  def test_a_changed_input_is_refused
    Weir::Testing.fake! do |t|
      q = Weir::Client.new
      q.enqueue_many("mail", 0...10, batch: "b")
      [0...5, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10], []].each do |rows|
        assert_raises(Weir::Invalid) { q.enqueue_many("mail", rows, batch: "b") }
      end
      assert_equal 10, t.jobs.size
      assert_raises(Weir::Invalid) { q.enqueue_many("mail", [1], then: "report") }
    end
  end

  def test_a_row_that_is_wrong_is_named
    Weir::Testing.fake! do |t|
      q = Weir::Client.new
      {[*0...1500, Float::NAN] => 1501, [*0...1500, 2**63] => 1501, [{}, "\0"] => 2}.each do |rows, line|
        assert_equal line, assert_raises(Weir::Invalid) { q.enqueue_many("mail", rows) }.line
      end
      error = assert_raises(Weir::Invalid) { q.enqueue_many(nil, [{type: "a"}, {type: "a", delay: 1}]) }
      assert_equal [2, "delay"], [error.line, error.member]
      q.enqueue_many(nil, [{type: "a", args: 1}, {type: "b", queue: "high"}])
      assert_equal %w[a b], t.jobs.last(2).map { |job| job["type"] }
    end
  end
end

class Summary
  include Weir::Job
  weir_options max_attempts: 2, queue: "low"
  DONE = []

  def perform(who, how = nil)
    raise how.is_a?(Class) ? how.new("as told") : how if how

    DONE << [who, job.attempt]
  end
end

class CountJob < ActiveJob::Base
  self.queue_adapter = :weir
  class Later < StandardError; end
  retry_on Later, wait: 30, attempts: 3
  DONE = []

  def perform(n, error = nil)
    raise Object.const_get(error), "told" if error

    DONE << n
  end
end

class JobsTest < Minitest::Test
  def setup
    @t = Weir::Testing.fake!
  end

  def teardown
    Weir::Testing.real!
  end

  def test_jobs
    Summary.perform_async(1)
    Summary.perform_in(60, 2)
    Summary.set(unique: "u").perform_async(3)
    assert Summary.set(unique: "u").perform_async(3).locked?
    assert_equal 2, Summary.perform_bulk([[4], [5]]).jobs
    assert_equal 4, @t.drain
    @t.move(60)
    assert_equal 1, @t.drain
    assert_equal [1, 3, 4, 5, 2], Summary::DONE.map(&:first)
    assert_equal "low", Weir.client.job(Summary.perform_async(6))["queue"]
  end

  def test_ends
    own = Weir::Handlers.new
    left = [Weir::Throttled.new(5), Weir::Retry.new("ill", after: 60), ArgumentError.new("x"), nil]
    own.handler("mail") { |_| (error = left.shift) && raise(error) }
    @t.rate("mail", "100/s")
    Weir.enqueue("mail", batch: "b", id: "j")
    {0 => "waiting", 5 => "retry", 60 => "retry", 31 => nil}.each do |seconds, state|
      @t.move(seconds)
      assert_equal [1, 0], [@t.drain(own), @t.drain(own)]
      assert_equal state ? ["j"] : [], @t.jobs(state: state).map { |job| job["id"] }
    end
    assert_equal [1, 2], Weir.client.batch("b").values_at("done", "failed")
  end

  def test_a_limit_with_keys_pauses_one
    own, told = Weir::Handlers.new, []
    own.handler("mail") { |job| (told << job.key).size == 1 && raise(Weir::Throttled.new(60)) }
    @t.rate("mail", "100/s,by=key")
    %w[a a b].each { |key| Weir.enqueue("mail", key: key) }
    assert_equal [2, %w[a b]], [@t.drain(own), told]
    assert_equal 60, Weir.client.rate("mail", key: "a").retry_after
    @t.move(60)
    assert_equal [2, %w[a b a a]], [@t.drain(own), told]
  end

  def test_answers
    job = Weir::Running.new({"id" => "j", "type" => "t"})
    {nil => {"status" => "done"}, Weir::Retry.new("why", after: 2) => {"status" => "retry", "after" => 2.0, "reason" => "why"},
     Weir::Throttled.new(3) => {"status" => "throttled", "after" => 3.0}, Weir::Throttled.new => {"status" => "throttled"},
     Weir::Dead.new("no") => {"status" => "dead", "reason" => "no"}, KeyError.new("k") => {"status" => "retry", "reason" => "KeyError: k"},
     Weir::Retry.new("x", after: Float::NAN) => {"status" => "retry", "reason" => "x"}, Weir::Dead.new("\xff") => {"status" => "dead", "reason" => "?"},
     Weir::Denied.new("d", 4) => {"status" => "retry", "after" => 4.0, "reason" => "Weir::Denied: d"}}.each do |error, answer|
      assert_equal({"id" => "j"}.merge(answer), job.answer(error))
    end
    {"cost" => 3, "spent" => {tokens: 3}}.each do |member, cost|
      job.spent(cost)
      assert_equal({"id" => "j", "status" => "done", member => cost}, job.answer(nil))
    end
  end

  def test_active_job
    ActiveJob::Base.logger = nil
    job = CountJob.perform_later(1)
    assert_equal job.provider_job_id, @t.jobs("count_job").first["id"]
    CountJob.set(wait_until: Time.now + 600, queue: "mail", priority: 5).perform_later(2)
    later = @t.jobs("count_job", state: "scheduled").first["id"]
    assert_equal "mail.5", Weir.client.job(later)["queue"]
    assert_equal 1, @t.drain
    @t.move(601)
    assert_equal 1, @t.drain
    assert_equal [1, 2], CountJob::DONE
    CountJob.perform_later(3, "CountJob::Later")
    runs = 5.times.sum { @t.move(40) && @t.drain }
    assert_equal 3, runs
    assert_equal ["CountJob::Later: told"], @t.dead.values
    CountJob.perform_later(4, "ArgumentError")
    @t.drain
    assert_includes @t.dead.values, "ArgumentError: told"
    @t.rate("count_job", "10/s")
    CountJob.perform_later(5, "Weir::Throttled")
    assert_equal [1, 0], [@t.drain, @t.drain]
  end
end

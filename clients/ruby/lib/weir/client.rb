require "socket"
require_relative "carriers"
require_relative "documents"

module Weir
  # The id of a job. new?: it was enqueued now. locked?: it is the job that holds the unique key.
  class Enqueued < String
    def initialize(answer)
      super(answer["id"])
      @new, @locked = answer["new"], answer.fetch("locked", false)
    end

    def new? = @new
    def locked? = @locked
  end

  # What came of a bulk: lines of the input, jobs that this call enqueued, lines that an earlier run had sent.
  Bulk = Struct.new(:lines, :jobs, :resumed)

  # How a limit is. retry_after: of a denial, seconds; nil: never. start_after: of who waited, the slot begins in so many seconds.
  Take = Struct.new(:allowed, :limit, :remaining, :reset_after, :retry_after, :start_after) do
    def self.of(answer) = new(*answer.values_at("allowed", "limit", "remaining", "reset_after", "retry_after", "start_after"))
    def allowed? = allowed
  end

  # Slots that are held, until the block ends. spent: what it has cost in truth, for the rates; nil: as much as it took.
  class Hold
    attr_reader :token, :ttl
    attr_accessor :spent

    def initialize(token, ttl, since)
      @token, @ttl, @till, @ended, @over = token, ttl, since + ttl, false, false
      @lock, @changed = Mutex.new, ConditionVariable.new
    end

    # The slots may be another's: it was ended, or could not be renewed in time.
    def lost? = @ended || self.class.clock >= @till

    def renewed(since) = @till = since + @ttl
    def ended = @ended = true

    # For the thread that renews it: nothing is to be renewed any more.
    def let_go
      @lock.synchronize { (@over = true) && @changed.broadcast }
    end

    def over_within?(seconds)
      @lock.synchronize { @over || (@changed.wait(@lock, seconds) && @over) }
    end

    # It goes on while the machine sleeps.
    def self.clock = Process.clock_gettime(defined?(Process::CLOCK_BOOTTIME) ? Process::CLOCK_BOOTTIME : Process::CLOCK_MONOTONIC)
  end

  # Answers again what was denied, until that can change: a second at most, so that a rule that was changed shows within one.
  class Denials
    MOST, LONGEST_S = 1000, 1.0

    def initialize
      @kept, @lock = {}, Mutex.new
    end

    def find(question, now)
      asked, till, answer = @lock.synchronize { @kept[question] }
      return unless till && till > now

      older = answer.merge("reset_after" => [0, answer["reset_after"] - (now - asked)].max)
      older["retry_after"] = answer["retry_after"] - (now - asked) if answer["retry_after"]
      older
    end

    def keep(question, asked, answer)
      @lock.synchronize do
        @kept.delete(question)
        @kept.shift if @kept.size >= MOST
        @kept[question] = [asked, asked + [LONGEST_S, answer.fetch("retry_after", LONGEST_S)].min, answer]
      end
    end

    def size = @kept.size
  end

  # Speaks to one Redis (url, else $REDIS_URL; or a connection of your own as redis:) and one namespace. A url that begins with
  # http is that of weir serve, with its token (else $WEIR_TOKEN). It connects at the first call. Threads may share it.
  class Client
    GIVE_UP_S = 15 # a lost call is asked again for that long, well within the minute for which made ids are remembered
    TEXT_LINES, TEXT_BYTES = 1000, 128 * 1024 # of one text of a bulk

    def initialize(url = nil, redis: nil, namespace: nil, token: nil)
      url ||= ENV.fetch("REDIS_URL", "redis://127.0.0.1:6379")
      url = "unix://#{File.expand_path(url)}" if url.start_with?("/", ".")
      @denials = Denials.new
      @carrier =
        if redis.nil? && url.match?(%r{\Ahttps?://})
          HttpCarrier.new(url, token || ENV.fetch("WEIR_TOKEN", nil))
        else
          RedisCarrier.new(redis || Redis.new(url: url, timeout: 15), namespace || ENV.fetch("WEIR_NAMESPACE", "weir"))
        end
    end

    # Enqueues one job and returns its id. It arrives once, also over a connection that breaks. Options: id, queue, key, cost,
    # delay, at, unique, unique_until, batch, remember, timeout, max_attempts, traceparent, meta.
    def enqueue(type, args = nil, **options)
      document = Documents.job(type, args, **options)
      answer = ask("enqueue", document, document[:id])
      # Nobody else knows an id that was made here: an answer was lost, and the job is there.
      answer["new"] = true unless options[:id] || answer["locked"]
      Enqueued.new(answer)
    end

    # Enqueues a job for each row, in constant memory; without type each row is a job: {type: ..., args: ...}. With a batch: call it
    # again with the same rows after any failure, and each job is there once. then: a type; a job of it follows when all have ended.
    def enqueue_many(type, rows, batch: nil, then: nil, queue: nil)
      after = binding.local_variable_get(:then)
      raise Invalid.new('wrong bulk: "then" wants a batch', "then") if after && !batch

      sending = Sending.new(self, {(batch ? :batch : :stream) => batch || "stream.#{Documents.make_id}", type: type, queue: queue})
      sending.resume_at(batch_or_nothing(batch)) if batch
      rows.each { |row| sending.add(row) }
      sending.finish
      seal(batch, then: after, queue: queue) if batch
      Bulk.new(sending.at, sending.jobs, sending.resumed)
    end

    # Returns where a job is: {"state" => ...}. Raises Missing: it is done, or was never enqueued.
    def job(id) = look("job", id)

    # Returns the job once it is finished or dead, or as it stands when the time is over. "result": what its handler left. Raises Missing: it
    # is done and its type is not kept, or was never enqueued.
    def wait(id, timeout)
      till, pause = clock + Documents.seconds(timeout), 0.02
      loop do
        asked = clock
        answer = job(id)
        now = clock
        return answer if %w[finished dead].include?(answer["state"]) || now >= till

        rest([till - now, [pause, 20 * (now - asked)].max].min) # it rests twenty times as long as a look takes
        pause = [1.0, pause * 1.5].min
      end
    end

    # Ends a job in any state: "removed", "marked", "told" (it runs), "already".
    def cancel(id) = look("cancel", id)["cancelled"]

    # Returns how far a batch is: state, total, left, done, dead, cancelled.
    def batch(name) = ask("batch", {batch: name})

    # Says that no more jobs come into the batch. enqueue_many does it itself.
    def seal(name, then: nil, queue: nil)
      after = binding.local_variable_get(:then)
      ask("batch", {batch: name, seal: true, then: after, queue: after && queue})
    end

    # Takes a slot, and says whether it was allowed. wait: so long it stands in line. fresh: asks also when the same was denied a
    # moment ago.
    def take(limit, key: nil, cost: 1, wait: 0, fresh: false)
      question, most, asked = [limit, key, cost], Documents.seconds(wait), clock
      known = @denials.find(question, asked) unless fresh
      return Take.of(known) if known && known.fetch("retry_after", Float::INFINITY) > most

      document = {limit: limit, key: key, cost: cost}
      answer = most.positive? ? stand_in_line("take", document, most)[0] : ask("take", document)
      @denials.keep(question, asked, answer) unless answer["allowed"] || most.positive?
      Take.of(answer)
    end

    # The same around a block: q.slot("openai") { ... }; raises Denied. A slot stays taken whatever happens in it.
    def slot(limit, **options)
      take = take(limit, **options)
      check_allowed(limit, take)
      block_given? ? yield(take) : take
    end

    # Holds slots, of concurrency too, while the block runs: q.hold("gpu", wait: 60) { |h| ...; h.spent = 3 }; raises Denied. A thread renews
    # them; if this program dies they come back ttl later. h.lost?: they may be another's, so stop; if they were at the end of the block,
    # that raises Missing.
    def hold(limit, key: nil, cost: 1, wait: 0, ttl: 30)
      document = {limit: limit, key: key, cost: cost, ttl: Documents.seconds(ttl), tag: Documents.make_id, who: "#{Socket.gethostname}:#{Process.pid}"}
      answer, since = stand_in_line("hold", document, Documents.seconds(wait))
      check_allowed(limit, Take.of(answer))
      held = Hold.new(answer["token"], document[:ttl], since)
      Weir.fake ? Weir.fake.renewed << held.token : Thread.new { renew(held) }
      begin
        value = yield(held)
      rescue Exception # the slots go back whatever happens
        quietly("end", {token: held.token, spent: held.spent})
        raise
      ensure
        held.let_go
      end
      end_hold(held)
      value
    end

    # Returns how a limit is, and takes nothing.
    def rate(limit, key: nil, cost: 1) = Take.of(ask("rate", {limit: limit, key: key, cost: cost}))

    # Returns what this Weir can do: protocol, verbs, capabilities, partitions.
    def about = ask("about", {})

    # Asks, and asks again when the answer was lost. For the parts of this library.
    def ask(verb, document, name = nil) = ask_text(verb, Documents.write(document), name)

    def ask_text(verb, text, name = nil)
      start, pause, lost = monotonic, 0.05, nil
      begin
        Documents.read(carry(verb, text))
      rescue Missing
        raise unless lost && verb == "end"

        {"ended" => true} # by the call whose answer was lost
      rescue Lost, Unreachable => e
        raise if e.is_a?(Unreachable) && !lost

        lost = e
        raise Unknown.new("outcome unknown: #{e.message}; ask again with #{name || 'the same'}, it happens once", name) if
          monotonic - start > GIVE_UP_S

        rest(pause)
        pause = [1.0, pause * 2].min
        retry
      end
    end

    # Carries a document as it is, and returns the answer as it came.
    def carry(verb, text) = (Weir.fake || @carrier).call(verb, text)

    private

    def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def clock = Weir.fake ? Weir.fake.clock : monotonic
    def rest(seconds) = Weir.fake ? Weir.fake.rest(seconds) : sleep(seconds)

    def check_allowed(limit, take)
      return if take.allowed?

      why = take.retry_after ? "denied; again in #{take.retry_after.round(3)} s" : "this costs more than the limit can hold"
      raise Denied.new("#{limit}: #{why}", take.retry_after)
    end

    def renew(held)
      pause = held.ttl / 3.0
      pause = renew_once(held) ? held.ttl / 3.0 : [1.0, held.ttl / 10.0].min until held.over_within?(pause)
    rescue Missing
      held.ended
    end

    def renew_once(held)
      since = Hold.clock
      ask("renew", {token: held.token})
      held.renewed(since)
    rescue Unreachable, Unknown
      nil
    end

    def end_hold(held)
      ask("end", {token: held.token, spent: held.spent})
    rescue Unreachable, Unknown
      nil # it ends by itself
    end

    def batch_or_nothing(name)
      batch(name)
    rescue Missing
      {"lines" => 0}
    end

    # A job that moves meanwhile may be passed over, so it is looked for twice.
    def look(verb, id)
      looked ||= 0
      document = {id: id}
      loop do
        answer = ask(verb, document)
        return answer if answer["state"] || answer["cancelled"] || !answer["cursor"]

        document[:cursor] = answer["cursor"]
      end
    rescue Missing
      (looked += 1) < 2 ? retry : raise
    end

    # Returns the answer, and a time of Hold.clock before it was asked for.
    def stand_in_line(verb, document, most)
      start = clock
      document[:wait] = most if most.positive?
      loop do
        asked = Hold.clock
        answer = ask(verb, document)
        rest(answer["start_after"]) if answer["start_after"]
        return answer, asked unless answer["place"]

        document[:place] = answer["place"]
        rest(answer["ask_after"])
        document[:wait] = [0, most - (clock - start)].max
      end
    rescue Exception # whoever is interrupted leaves the line too, and perhaps holds
      quietly("end", {token: "#{document[:limit]}~#{document[:tag]}"}) if verb == "hold"
      quietly(verb, document.except(:wait).merge(leave: true)) if document[:place]
      raise
    end

    def quietly(verb, document)
      carry(verb, Documents.write(document))
    rescue Error, Lost
      nil # it comes by itself: a place is lost ten seconds behind its slot, a hold has an end
    end
  end

  # A bulk on its way: rows become lines, lines texts.
  class Sending
    attr_reader :at, :jobs, :resumed

    def initialize(client, head)
      @client, @head, @name = client, head, head[:batch] || head[:stream]
      @at, @jobs, @resumed, @sum, @row = 0, 0, 0, "0" * 16, 0
      @lines, @bytes = [], 0
    end

    def resume_at(known)
      @resumed, @known_sum = known["lines"], known["sum"]
    end

    def add(row)
      @row += 1
      line = dump(row)
      return pass_over(line) if @at < @resumed

      send_lines if @lines.any? && (@lines.size == Client::TEXT_LINES || @bytes + line.bytesize > Client::TEXT_BYTES)
      @lines << line
      @bytes += line.bytesize + 1
    end

    def finish
      changed if @at < @resumed
      send_lines if @lines.any?
    end

    private

    def dump(row)
      Documents.dump(row, "args")
    rescue Invalid => e
      raise Invalid.new("line #{@row}: #{e.message}", e.member, @row)
    end

    def pass_over(line)
      @at += 1
      @sum = Documents.add_line(@sum, line)
      changed if @at == @resumed && @sum != @known_sum
    end

    def changed
      raise Invalid.new("batch #{@name}: the input is another one than that of which a part was sent; nothing more is sent", "batch")
    end

    def send_lines
      head = @head.merge(offset: @at, sum: @head[:batch] && @sum)
      answer = @client.ask_text("bulk", [Documents.write(head), *@lines].join("\n"), @name)
      check_lost(answer) unless answer["taken"]
      @jobs += answer["taken"] ? answer["jobs"] : @lines.size
      @at, @sum = answer.values_at("lines", "sum")
      @lines, @bytes = [], 0
    rescue Invalid => e
      line = e.line && @at + e.line
      raise Invalid.new(line ? "line #{line}: #{e.message}" : e.message, e.member, line)
    end

    # An answer that was lost: the batch has these lines already.
    def check_lost(answer)
      sum = @lines.reduce(@sum) { |before, line| Documents.add_line(before, line) }
      return if answer["lines"] == @at + @lines.size && (!@head[:batch] || answer["sum"] == sum)

      raise Closed, "#{@name}: it has #{answer['lines']} lines, not #{@at}: somebody else sends it, or it was forgotten"
    end
  end
end

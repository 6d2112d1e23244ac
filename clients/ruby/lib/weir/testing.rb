require "json"
require_relative "checks"
require_relative "job"
require_relative "limits"

module Weir
  # A Weir in memory, for the tests of programs: Weir::Testing.fake! { |t| ... }, or Weir::Testing.fake! until Weir::Testing.real!.
  # Every client speaks to it then instead of Redis.
  #
  # It takes the documents of the protocol and refuses what Weir refuses. Its clock stands still until t.move. Its limits are those of
  # Weir::Limits; a limit holds the type of its name. It has no partitions, schedules, rights, or workers: t.drain runs jobs here
  # and now, one after the other.
  module Testing
    def self.fake!
      before, Weir.fake = Weir.fake, Fake.new
      return Weir.fake unless block_given?

      begin
        yield Weir.fake
      ensure
        Weir.fake = before
      end
    end

    def self.real! = Weir.fake = nil

    # A job of the test mode. due and enqueued_at are microseconds.
    Kept = Struct.new(:document, :queue, :enqueued_at, :due, :state, :attempts, :reason, :batch, :unique, :result) do
      def id = document["id"]
      def type = document["type"]
      def cost = document.fetch("cost", 1)
    end

    class Fake
      VERBS = %w[about batch bulk cancel end enqueue hold job rate renew take].freeze
      Held = Struct.new(:since, :until, :ttl, :cost, :gates)

      attr_reader :renewed # tokens of holds that a client renews as long as it holds them

      KEEP_MADE_S, KEEP_GIVEN_S = 60, 86_400
      FOR_EVER = 1 << 62

      def initialize
        @now = (Time.now.to_r * 10**6).to_i
        @limits, @line, @ids, @unique, @batches, @streams = {}, [], {}, {}, {}, Hash.new(0)
        @holds, @renewed = {}, [] # by their tokens
        @keeps, @done = {}, {} # of a type, microseconds; jobs that are done, until they are due
      end

      # ---- What tests ask

      # The jobs that have not ended, and those that are dead, as handlers see them.
      def jobs(type = nil, state: nil)
        @line.select { |one| (type.nil? || one.type == type) && (state.nil? || one.state == state) }.map(&:document)
      end

      # The args of the jobs of a type.
      def args(type) = jobs(type).map { |one| one["args"] }

      # The dead jobs, with their reasons.
      def dead = @line.select { |one| one.state == "dead" }.to_h { |one| [one.id, one.reason] }

      # Sets a limit, as weir rate set.
      def rate(name, *rules) = @limits[name] = Limits::Limit.new(rules.join(" "))

      # Keeps jobs of that type, with their results, so long behind their end, as weir worker --keep.
      def keep(type, seconds) = @keeps[type] = us(seconds)

      # Moves the clock forward.
      def move(seconds) = @now += (seconds.to_r * 10**6).round

      # Runs what may start at this time, each job by its handler, and returns how many were run. Where no handler is there, and where a
      # limit says not yet, jobs stay.
      def drain(handlers = Weir.handlers)
        ran = 0
        while (job = @line.find { |one| handlers.handles?(one.type) && may_start?(one) })
          run(job, handlers)
          ran += 1
        end
        ran
      end

      # ---- A carrier, as of Redis

      def clock = @now / 1e6

      # A rest that is too short for the clock would never end.
      def rest(seconds) = @now += [1, us(seconds)].max

      def call(verb, text)
        raise Missing, "#{verb}: no such verb" unless VERBS.include?(verb)

        JSON.generate(send("do_#{verb}", verb == "bulk" ? text : Checks.read_object(text)))
      rescue Invalid, Missing, Closed => e
        answer = {refused: e.class.name[/\w+\z/].downcase, why: e.message.scrub("?"), member: e.member}
        answer[:line] = e.line if e.is_a?(Invalid)
        JSON.generate(answer.compact)
      end

      private

      def do_about(document)
        Checks.check(document, {})
        {protocol: 1, verbs: VERBS, capabilities: ["costs", "hold", "result"], partitions: 1}
      end

      def do_enqueue(document)
        Checks.check(document, Checks::ENQUEUE, "type", "job")
        raise Invalid.new('wrong job: "in" or "at", not both', "at") if document.key?("in") && document.key?("at")
        raise Invalid.new('wrong job: "unique_until" without "unique"', "unique_until") if document.key?("unique_until") && !document.key?("unique")

        check_cost(document)
        id = document["id"] || Documents.make_id
        return {id: id, new: false} if @ids.fetch(id, 0) > @now

        holder, till = @unique[document["unique"]]
        return {id: holder, new: false, locked: true} if holder && till > @now

        open_batch(document["batch"]) if document["batch"]
        @ids[id] = @now + document.fetch("remember", document["id"] ? KEEP_GIVEN_S : KEEP_MADE_S) * 10**6
        job = add(document.merge("id" => id), document.fetch("queue", "default"), document["batch"])
        job.due = document["at"] ? us(document["at"]) : @now + us(document.fetch("in", 0))
        job.state = job.due > @now ? "scheduled" : "waiting"
        lock(job, document["unique"], document.fetch("unique_until", "end")) if document["unique"]
        {id: id, new: true}
      end

      def refuse(error, member, why) = raise(error.new(why).tap { |one| one.member = member })

      def us(seconds) = (seconds.to_r * 10**6).round

      def lock(job, key, till)
        job.unique = key
        @unique[key] = [job.id, till.is_a?(String) ? FOR_EVER : @now + us(till), till]
      end

      def check_cost(document)
        (@limits[document["type"]]&.rules || []).each do |rule|
          next if rule.slots(document.fetch("cost", 1)) <= rule.burst

          raise Invalid.new("wrong job: its cost #{word(document['cost'])} never fits #{rule.text} of #{document['type']}", "cost")
        end
      end

      # A cost as places of a line have it.
      def word(cost)
        return cost.to_s unless cost.is_a?(Hash)

        [cost["plain"], *cost.except("plain").sort.map { |name, n| "#{name}:#{n}" }].compact.join(",")
      end

      def add(document, queue, batch)
        front = %w[id type key cost].select { |name| document.key?(name) }
        body = document.slice(*front).merge(document.slice(*Checks::JOB.keys))
        body["cost"] = body["cost"]["plain"] if body["cost"].is_a?(Hash) && body["cost"].keys == ["plain"] # as the handlers of a worker get it
        @batches[batch][:total] += 1 if batch
        @line << Kept.new({}.merge(body), queue, @now, @now, "waiting", 0, "", batch, nil)
        @line.last
      end

      def open_batch(name)
        batch = @batches[name] ||= {total: 0, done: 0, dead: 0, cancelled: 0, failed: 0, lines: 0, sum: "0" * 16, created_at: clock}
        refuse(Closed, "batch", "batch #{name} is sealed: it takes no more jobs; use another name") if batch[:sealed_at]

        batch
      end

      def do_bulk(text)
        raise Invalid, "the text has more than #{Checks::BULK_BYTES} bytes" if text.bytesize > Checks::BULK_BYTES

        first, *lines = text.split("\n", -1)
        lines.pop if lines.last == ""
        head = Checks.check(Checks.read_object(first), Checks::HEAD, nil, "head")
        refuse(Invalid, head["stream"] ? "stream" : "batch", 'wrong head: "batch" or "stream", one of them') if head.key?("batch") == head.key?("stream")
        refuse(Invalid, "sum", 'wrong head: a "sum" is of a batch') if head.key?("stream") && head.key?("sum")
        raise Invalid, "#{lines.size} lines: at most #{Checks::BULK_LINES} in one text" if lines.size > Checks::BULK_LINES

        put(head, lines)
      end

      def put(head, lines)
        batch, offset, zeros = head["batch"], head.fetch("offset", 0), "0" * 16
        state = batch ? @batches.fetch(batch, {lines: 0, sum: zeros}) : {lines: @streams[head["stream"]], sum: zeros}
        if state[:lines] != offset || (batch && head.fetch("sum", state[:sum]) != state[:sum])
          return {taken: false, lines: state[:lines], jobs: 0, sum: state[:sum]}
        end

        jobs = lines.each_with_index.filter_map { |line, i| line_of(head, line, i + 1) }
        if batch
          state = open_batch(batch)
          state[:sum] = lines.reduce(state[:sum]) { |sum, line| Documents.add_line(sum, line) }
        else
          @streams[head["stream"]] += lines.size
        end
        state[:lines] += lines.size
        jobs.each { |job| add({"id" => Documents.make_id}.merge(job), job["queue"] || head["queue"] || "default", batch) }
        {taken: true, lines: state[:lines], jobs: jobs.size, sum: state[:sum]}
      end

      def line_of(head, line, number)
        return if line.match?(/\A[ \t\r]*\z/)

        job = if head["type"]
                {"type" => head["type"], "args" => Checks.read_json(line, "wrong args, not JSON", Checks::DEPTH)}
              else
                Checks.check(Checks.read_object(line), Checks::LINE, "type", "job")
              end
        check_cost(job)
        job
      rescue Invalid => e
        raise Invalid.new(e.message, e.member, number)
      end

      def do_batch(document)
        Checks.check(document, Checks::BATCH, "batch")
        [%w[then seal], %w[queue then]].each do |name, other|
          raise Invalid.new("wrong document: \"#{name}\" without \"#{other}\"", name) if document.key?(name) && !document.key?(other)
        end
        name, batch = document["batch"], @batches[document["batch"]]
        if document["seal"] && !(batch && batch[:sealed_at])
          batch = seal(name, document)
        elsif batch && document["then"] && batch.values_at(:then, :queue) != [document["then"], document.fetch("queue", "default")]
          raise Closed, "batch #{name} was sealed before, with another job to follow"
        end
        raise Missing, "batch #{name}: no such batch" unless batch

        left = batch[:total] - batch.values_at(:done, :dead, :cancelled).sum
        {batch: name, state: batch[:ended_at] ? "ended" : batch[:sealed_at] ? "sealed" : "open", left: left}.merge(batch.except(:queue))
      end

      def seal(name, document)
        batch = open_batch(name)
        batch[:sealed_at] = clock
        batch[:then], batch[:queue] = document["then"], document.fetch("queue", "default") if document["then"]
        end_batch(name)
        batch
      end

      def end_batch(name)
        batch = @batches[name]
        return if !batch[:sealed_at] || batch[:ended_at] || batch[:total] > batch.values_at(:done, :dead, :cancelled).sum

        batch[:ended_at] = clock
        counts = {"batch" => name}.merge(batch.slice(:total, :done, :dead, :cancelled).transform_keys(&:to_s))
        add({"id" => "#{name}.then", "type" => batch[:then], "args" => counts}, batch[:queue], nil) if batch[:then]
      end

      def do_job(document)
        job = find(document)
        {id: job.id, state: job.state, type: job.type, queue: job.queue, attempts: job.attempts, enqueued_at: job.enqueued_at / 1e6,
         batch: job.batch, unique: job.unique, reason: job.state == "dead" ? job.reason : nil,
         start: %w[scheduled retry].include?(job.state) ? job.due / 1e6 : nil,
         outcome: job.state == "finished" ? "done" : nil}.compact.merge(job.result || {})
      end

      def find(document)
        Checks.check(document, Checks::ID, "id")
        kept = @done[document["id"]]
        return kept if kept && kept.due > @now

        @line.find { |one| one.id == document["id"] } or
          raise Missing, "job #{document['id']}: no such job here: it is done, or was never enqueued"
      end

      def do_cancel(document)
        job = find(document)
        raise Closed, "job #{job.id}: it is #{job.state} already" if %w[dead finished].include?(job.state)
        return {id: job.id, cancelled: "told"} if job.state == "running"

        finish(job, :cancelled)
        {id: job.id, cancelled: "removed"}
      end

      def do_take(document) = ask_limit(Checks.check(document, Checks::TAKE, "limit"), true)
      def do_rate(document) = ask_limit(Checks.check(document, Checks::RATE, "limit"), false)

      def do_hold(document)
        Checks.check(document, Checks::HOLD, "limit")
        end_late
        tag = document["place"]&.split(".")&.last || document["tag"] || Documents.make_id
        token = "#{document['limit']}~#{tag}"
        if @holds[token] && !document["leave"]
          extend_hold(token)
          return {allowed: true, limit: 0, remaining: 0, reset_after: 0, token: token}
        end
        answer = ask_limit(document, true, tag)
        return answer unless answer[:allowed]

        ttl = us(document.fetch("ttl", 30))
        @holds[token] = Held.new(@now, @now + ttl, ttl, document.fetch("cost", 1), @limits[document["limit"]].of(document["key"]))
        answer.merge(token: token)
      end

      def do_renew(document)
        extend_hold(held(Checks.check(document, Checks::RENEW, "token")))
        {held: true}
      end

      def do_end(document)
        give_back(held(Checks.check(document, Checks::END_HOLD, "token")), document["spent"])
        {ended: true}
      end

      def held(document)
        end_late
        refuse(Missing, "token", "it is not held any more; it has ended, or was not renewed in time") unless @holds[document["token"]]

        document["token"]
      end

      def extend_hold(token) = @holds[token].until = @now + @holds[token].ttl

      def give_back(token, spent = nil)
        held = @holds.delete(token)
        held.gates.each do |gate|
          gate.running -= 1 if gate.rule.algorithm == "concurrency"
          gate.settle(held.since, held.cost, spent) if spent
        end
        @renewed.delete(token)
      end

      def end_late
        @holds.select { |token, held| held.until <= @now && !@renewed.include?(token) }.each_key { |token| give_back(token) }
      end

      def ask_limit(document, takes, tag = nil)
        place = document["place"]
        refuse(Invalid, "place", 'wrong document: "place" without "wait" or "leave"') if place && !document.key?("wait") && !document.key?("leave")
        refuse(Invalid, "place", 'wrong document: "place" is of another cost') if place && place.split(".")[1] != word(document.fetch("cost", 1))
        refuse(Invalid, "tag", 'wrong document: "tag" is not that of "place"') if tag && document.fetch("tag", tag) != tag
        refuse(Invalid, "leave", 'wrong document: "leave" without "place"') if document.key?("leave") && !document.key?("place")

        limit = @limits[document["limit"]]
        refuse(Missing, "limit", "there is no such limit; set it with weir rate set, or give a rule") unless limit
        raise Invalid.new("the limit counts jobs in flight, which a take cannot give back", "limit") if
          !tag && limit.rules.any? { |rule| rule.algorithm == "concurrency" }
        raise Invalid.new(limit.by ? "the limit is kept for each key; name one" : "the limit has no keys", "key") if
          limit.by.nil? == document.key?("key")

        document["leave"] ? {left: true} : answer_take(limit, limit.of(document["key"]), document, takes, tag)
      end

      def answer_take(limit, gates, document, takes, tag)
        cost = document.fetch("cost", 1)
        paused = limit.paused(document["key"])
        start = [paused, @now, *gates.map { |gate| gate.start(@now, cost) }].max
        allowed = start == @now
        gates.each { |gate| gate.take(@now, cost) } if allowed && takes
        reset = [paused, @now, *gates.map { |gate| gate.resets(@now) }].max
        answer = {allowed: allowed, limit: gates.map { |gate| gate.rule.burst }.min, reset_after: (reset - @now) / 1e6,
                  remaining: paused <= @now ? gates.map { |gate| gate.remaining(@now) }.min : 0}
        return answer if allowed
        misfit = gates.find { |gate| gate.start(@now, cost) == Limits::Gate::NEVER }
        return answer.merge(never: true, limit: misfit.rule.burst) if misfit

        when_one_ends = document.fetch("wait", 0).positive? ? 0.1 : 10.0
        answer[:retry_after] = after = start >= Limits::Gate::WHEN_ONE_ENDS ? when_one_ends : (start - @now) / 1e6
        return answer if after > document.fetch("wait", -1)

        answer.merge(place: "#{@now}.#{word(cost)}.#{tag || 'fake'}", ask_after: [5, after].min)
      end

      # ---- Running

      def gates_of(job)
        limit = @limits[job.type]
        limit ? limit.of(limit.key_of(job.document)) : []
      end

      def may_start?(job)
        return false if %w[dead running].include?(job.state) || job.due > @now
        end_late
        limit = @limits[job.type]
        return false if limit && limit.paused(limit.key_of(job.document)) > @now

        gates_of(job).all? { |gate| gate.start(@now, job.cost) == @now }
      end

      def run(job, handlers)
        gates = gates_of(job)
        gates.each { |gate| gate.take(@now, job.cost) }
        free(job) if job.unique && @unique.dig(job.unique, 2) == "start"
        job.state = "running"
        given = {"attempt" => job.attempts + 1, "enqueued_at" => job.enqueued_at / 1e6}.merge(job.document)
        answer = handlers.run_one(Running.new(JSON.parse(JSON.generate(given), max_nesting: 1000)))
        gates.each { |gate| gate.running -= 1 if gate.rule.algorithm == "concurrency" }
        job.state = "waiting"
        case answer["status"]
        when "done" then done(job, answer.slice("result"))
        when "throttled" then throttle(job, answer.fetch("after", 1.0))
        else fail_job(job, answer)
        end
      end

      def done(job, result)
        finish(job, :done)
        return unless @keeps[job.type]

        job.state, job.due, job.attempts, job.result = "finished", @now + @keeps[job.type], job.attempts + 1, result
        @done[job.id] = job
      end

      def throttle(job, after)
        till = @now + [100_000, us(after)].max
        limit = @limits[job.type]
        limit ? limit.pause(limit.key_of(job.document), till) : job.due = till
      end

      def fail_job(job, answer)
        job.attempts += 1
        job.reason = answer.fetch("reason", "")
        @batches[job.batch][:failed] += 1 if job.batch
        return finish(job, :dead) if answer["status"] == "dead" || job.attempts >= job.document.fetch("max_attempts", 25)

        job.state, job.due = "retry", @now + us(answer.fetch("after", 15 + job.attempts**4))
      end

      def free(job)
        holder, _, till = @unique[job.unique]
        @unique.delete(job.unique) if holder == job.id && till.is_a?(String)
      end

      def finish(job, how)
        how == :dead ? job.state = "dead" : @line.delete_if { |one| one.equal?(job) }
        free(job) if job.unique
        return unless job.batch

        @batches[job.batch][how] += 1
        end_batch(job.batch)
      end
    end
  end
end

require "json"
require_relative "errors"

module Weir
  # Limits without a server, for Weir::Testing: gcra (and token-bucket, which is the same), fixed-window and sliding-log in exact
  # microseconds, and concurrency. What it does not know it refuses: sliding-window, months, zones, offset and adapt.
  module Limits
    UNITS = {"us" => 1, "ms" => 1000, "s" => 10**6, "m" => 60 * 10**6, "h" => 3600 * 10**6, "d" => 86_400 * 10**6,
             "w" => 7 * 86_400 * 10**6}.freeze
    NAME = /\.[A-Za-z0-9_-]+/
    BY = /,by=(?:(?:args|meta)#{NAME}|id|type|cost|key|timeout|max_attempts|traceparent)(?:#{NAME})*/
    RATE = %r{\A(\d+)/(\d+(?:\.\d+)?)?(us|ms|s|m|h|d|w)
              ((?:,burst=\d+|,algorithm=(?:gcra|token-bucket|fixed-window|sliding-log)|,of=[a-z][a-z0-9_]{0,31}|#{BY})*)\z}x
    JOBS = /\Aconcurrency=(\d+)((?:#{BY})*)\z/
    COUNTS = 1..10**9
    TEN_YEARS = 3650 * UNITS["d"]

    class Rule
      attr_reader :text, :algorithm, :count, :period, :burst, :by

      def initialize(text)
        rate = RATE.match(@text = text)
        unless (found = rate || JOBS.match(text))
          refuse "the test mode has no months, zones, offset=, adapt= or sliding-window; write it as 100/1m,burst=5,by=key or concurrency=5"
        end
        given = found[-1].split(",").drop(1).map { |option| option.split("=") }
        options = given.to_h
        @algorithm, @by, @count = rate ? options.fetch("algorithm", "gcra") : "concurrency", options["by"], found[1].to_i
        @of = options.fetch("of", "plain")
        refuse "of=plain is left out" if options["of"] == "plain"
        @burst, @period = options.fetch("burst", @count).to_i, rate ? (rate[2] || "1").to_r * UNITS[rate[3]] : TEN_YEARS.to_r
        refuse "an option is there twice" if options.size < given.size
        check(options)
        @period = @period.to_i
      end

      # How many slots a job of that cost takes. unsaid: where it does not say.
      def slots(cost, unsaid = 1)
        @of == "jobs" || @algorithm == "concurrency" ? 1 : (cost.is_a?(Hash) ? cost : {"plain" => cost}).fetch(@of, unsaid)
      end

      private

      def check(options)
        refuse "the path behind by= is longer than 128 characters" if @by && @by.size > 128
        refuse "the count and the burst must be 1 to 1000000000" unless COUNTS.cover?(@count) && COUNTS.cover?(@burst)
        refuse "sliding-log takes a count of at most 10000" if @algorithm == "sliding-log" && @count > 10_000
        refuse "the period must be whole microseconds, and at most ten years" unless @period.denominator == 1 && (1..TEN_YEARS).cover?(@period)
        refuse "more than 1000000 a second" if @period < @count
        refuse "#{@algorithm} has no burst" if options["burst"] && @algorithm.match?(/-(window|log)\z/)
        refuse "a burst that takes more than ten years" if (@burst - 1) * @period > TEN_YEARS * @count
      end

      def refuse(why) = raise Invalid.new("rule '#{@text}': #{why}", "rules")
    end

    # The state of a rule, of one key. Times are whole microseconds.
    class Gate
      NEVER = Float::INFINITY
      WHEN_ONE_ENDS = 1 << 62

      attr_reader :rule
      attr_accessor :running

      def initialize(rule)
        @rule, @tat, @log, @running = rule, 0r, [], 0
      end

      # When such a start may be.
      def start(now, cost)
        cost = @rule.slots(cost)
        return now if cost.zero?
        return @running < @rule.count ? now : WHEN_ONE_ENDS if @rule.algorithm == "concurrency"
        return NEVER if cost > @rule.burst
        return [now, (@tat - Rational(@rule.period, @rule.count) * (@rule.burst - cost)).ceil].max if gcra?

        excess = used(now) + cost - @rule.count
        return now if excess <= 0
        return window(now) + @rule.period if fixed?

        live(now).each { |at, slots| return at + @rule.period if (excess -= slots) <= 0 }
      end

      def take(now, cost)
        cost = @rule.slots(cost)
        return if cost.zero?

        if @rule.algorithm == "concurrency"
          @running += 1
        elsif gcra?
          @tat = now.to_r if now > @tat.ceil
          @tat += Rational(@rule.period, @rule.count) * cost
        else
          @log = live(now) << [now, cost]
        end
      end

      # What started then has cost so much in truth.
      def settle(at, said, truth)
        cost = @rule.slots(said)
        spent = @rule.slots(truth, cost)
        return @tat += Rational(@rule.period, @rule.count) * (spent - cost) if gcra?

        @log = @log.map { |one| one == [at, cost] ? [at, spent] : one }
      end

      def remaining(now)
        return @rule.count - @running if @rule.algorithm == "concurrency"
        return [0, @rule.count - used(now)].max unless gcra?

        [0, @rule.burst - ([0, @tat - now].max * @rule.count / @rule.period).ceil].max
      end

      # When all is as if never used.
      def resets(now)
        return [now, @tat.ceil].max if gcra?
        return now if live(now).empty?

        fixed? ? window(now) + @rule.period : live(now).last[0] + @rule.period
      end

      private

      def gcra? = %w[gcra token-bucket].include?(@rule.algorithm)
      def fixed? = @rule.algorithm == "fixed-window"
      def window(at) = at - at % @rule.period
      def used(now) = live(now).sum { |_, slots| slots }
      def live(now) = @log.select { |at, _| fixed? ? at >= window(now) : at > now - @rule.period }
    end

    class Limit
      attr_reader :rules, :by

      def initialize(text)
        @rules = text.split.map { |one| Rule.new(one) }
        raise Invalid.new("a limit has one to eight rules", "rules") unless (1..8).cover?(@rules.size)

        paths = @rules.filter_map(&:by).uniq
        raise Invalid.new("all keyed rules of a limit use one path", "rules") if paths.size > 1

        @by, @pauses, @gates = paths.first, Hash.new(0), {}
      end

      def of(key)
        @rules.each_with_index.map { |rule, i| @gates[[i, rule.by && key]] ||= Gate.new(rule) }
      end

      # A limit with keys pauses one of them.
      def pause(key, till) = @pauses[@by && key] = till
      def paused(key) = @pauses[@by && key]

      # The key of a job: the value at the path of the rules.
      def key_of(job)
        return unless @by

        value = @by.split(".").reduce(job) { |at, name| at.is_a?(Hash) ? at[name] : nil }
        value.nil? ? "-" : value.is_a?(String) ? value : JSON.generate(value)
      end
    end
  end
end

require "json"
require_relative "errors"

module Weir
  # Limits without a server, for Weir::Testing: gcra (and token-bucket, which is the same), fixed-window and sliding-log in exact
  # microseconds, and concurrency. What it does not know it refuses: sliding-window, offset and adapt.
  module Limits
    UNITS = {"us" => 1, "ms" => 1000, "s" => 10**6, "m" => 60 * 10**6, "h" => 3600 * 10**6, "d" => 86_400 * 10**6,
             "w" => 7 * 86_400 * 10**6}.freeze

    class Rule
      attr_reader :text, :algorithm, :count, :period, :burst, :by

      def initialize(text)
        head, *options = text.split(",")
        @text, @algorithm, @by = text, "gcra", nil
        if (found = head.match(%r{\A([1-9]\d*)/(\d+(?:\.\d+)?)?(us|ms|s|m|h|d|w)\z}))
          @count, @period = found[1].to_i, ((found[2] || "1").to_r * UNITS[found[3]]).to_i
        elsif (found = head.match(/\Aconcurrency=([1-9]\d*)\z/))
          @algorithm, @count = "concurrency", found[1].to_i
        else
          raise Invalid.new("rule '#{text}': write it as 100/1m or concurrency=5", "rules")
        end
        @burst = @count
        options.each { |option| read(option) }
      end

      private

      def read(option)
        case option
        when /\Aby=(key|[\w-]+(?:\.[\w-]+)*)\z/ then @by = Regexp.last_match(1)
        when /\Aburst=([1-9]\d*)\z/ then @burst = Regexp.last_match(1).to_i
        when /\Aalgorithm=(gcra|token-bucket|fixed-window|sliding-log)\z/ then @algorithm = Regexp.last_match(1)
        else raise Invalid.new("rule '#{@text}': the test mode does not know #{option}", "rules")
        end
      end
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
        return @running < @rule.count ? now : WHEN_ONE_ENDS if @rule.algorithm == "concurrency"
        return NEVER if cost > @rule.burst
        return [now, (@tat - Rational(@rule.period, @rule.count) * (@rule.burst - cost)).ceil].max if gcra?

        excess = used(now) + cost - @rule.count
        return now if excess <= 0
        return window(now) + @rule.period if fixed?

        live(now).each { |at, slots| return at + @rule.period if (excess -= slots) <= 0 }
      end

      def take(now, cost)
        if @rule.algorithm == "concurrency"
          @running += 1
        elsif gcra?
          @tat = now.to_r if now > @tat.ceil
          @tat += Rational(@rule.period, @rule.count) * cost
        else
          @log = live(now) << [now, cost]
        end
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

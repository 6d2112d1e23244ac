require "json"
require_relative "errors"

module Weir
  # The checks of protocol 1 for Weir::Testing: what Weir refuses is refused with the same members, and in the same words.
  module Checks
    TEN_YEARS_S, YEAR_2100_S = 315_532_800, 4_102_444_800
    JOB_BYTES, BULK_BYTES, BULK_LINES, DEPTH = 1 << 20, 2 << 20, 1000, 511
    NAME = /\A[A-Za-z0-9_.-]{1,128}\z/
    TRACEPARENT = /\A(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\z/

    # An object that remembers a member that came twice.
    class Members < Hash
      attr_reader :twice

      def []=(name, value)
        @twice ||= name if key?(name)
        super
      end
    end

    module_function

    def read_json(text, what, depth)
      raise ArgumentError, "invalid UTF-8" unless text.dup.force_encoding(Encoding::UTF_8).valid_encoding?

      raise ArgumentError, "a comment" if text.gsub(/"(\\.|[^"\\])*"/m, "").include?("/") # which Ruby passes over
      check_escapes(text)
      value = JSON.parse(text, object_class: Members, max_nesting: depth)
      check_value(value)
      value
    rescue JSON::ParserError, ArgumentError => e
      raise Invalid, "#{what}: #{e.message}"
    end

    # Ruby takes escapes that are none, and halves of pairs.
    def check_escapes(text)
      raise ArgumentError, "an unknown escape" if text.scan(/\\./m).any? { |escape| !'"\/bfnrtu'.include?(escape[1]) && escape[1] != "\\" }

      codes = text.gsub(/\\[^u]/m, "").gsub(/\\u[dD][89abAB]\h\h\\u[dD][c-fC-F]\h\h/, "")
      raise ArgumentError, "half a surrogate pair" if codes.match?(/\\u[dD][89a-fA-F]/)
    end

    def check_value(value)
      case value
      when Hash then value.each { |name, one| [name, one].each { |each| check_value(each) } }
      when Array then value.each { |one| check_value(one) }
      when String then raise ArgumentError, '\u0000 is not supported' if value.include?("\0")
      when Integer then raise ArgumentError, "an integer that does not fit 64 bits" unless value.bit_length < 64
      when Float then raise ArgumentError, "a number too large for a double" unless value.finite?
      end
    end

    def read_object(text)
      raise Invalid, "the document has more than #{JOB_BYTES} bytes" if text.bytesize > JOB_BYTES

      value = read_json(text, "not JSON", DEPTH + 1)
      raise Invalid, "not a JSON object" unless value.is_a?(Hash)
      raise Invalid.new("not JSON: a member comes twice", value.twice) if value.twice

      value
    end

    number = ->(low, high) { ->(value) { value.is_a?(Numeric) && value.between?(low, high) } }
    whole = ->(low, high) { [->(value) { value.is_a?(Integer) && value.between?(low, high) }, "a whole number from #{low} to #{high}"] }
    text = ->(form, must_be) { [->(value) { value.is_a?(String) && value.match?(form) }, must_be] }
    part, named = whole[0, 10**9][0], /\A(?!(?:plain|jobs)\z)[a-z][a-z0-9_]{0,31}\z/
    cost = lambda do |least|
      fits, must_be = whole[least, 10**9]
      by_name = lambda do |value|
        names = value.keys - ["plain"]
        value.any? && !(value.respond_to?(:twice) && value.twice) && names.size <= 8 && names.all? { |one| one.match?(named) && part[value[one]] } &&
          fits[value.fetch("plain", least)]
      end
      [->(value) { value.is_a?(Hash) ? by_name[value] : fits[value] }, "#{must_be}, or by up to 8 names, {\"tokens\": 900}"]
    end
    name, any, yes = text[NAME, "a name: 1 to 128 of A-Z a-z 0-9 _ . -"], [->(_) { true }, "any value"], [->(value) { value == true }, "true"]
    span_until = number[0.001, TEN_YEARS_S]

    # Of each member a check, and what it must be.
    JOB = {
      "type" => name, "id" => name, "args" => any, "key" => name, "cost" => cost[1], "max_attempts" => whole[1, 10**6],
      "timeout" => [->(value) { value.is_a?(Numeric) && value.positive? && value <= TEN_YEARS_S }, "a number of seconds above 0, at most ten years"],
      "traceparent" => text[TRACEPARENT, "VERSION-TRACE-SPAN-FLAGS in lower-case hex"], "meta" => any
    }.freeze
    ENQUEUE = JOB.merge(
      "queue" => name, "in" => [number[0, YEAR_2100_S - 1e-6], "a number of seconds, before the year 2100"],
      "at" => [number[0, YEAR_2100_S - 1e-6], "seconds since 1970, before the year 2100"], "unique" => name,
      "unique_until" => [->(value) { %w[end start].include?(value) || span_until[value] }, '"end", "start", or seconds from 0.001 to ten years'],
      "batch" => name, "remember" => whole[1, 2_592_000]
    ).freeze
    LINE = JOB.merge("queue" => name).freeze
    HEAD = {"batch" => name, "stream" => name, "offset" => whole[0, (1 << 53) - 1], "type" => name, "queue" => name,
            "sum" => text[/\A[0-9a-f]{16}\z/, "16 hexadecimal digits"]}.freeze
    BATCH = {"batch" => name, "seal" => yes, "then" => name, "queue" => name}.freeze
    RATE = {"limit" => name, "key" => [->(value) { value.is_a?(String) && value.bytesize.between?(1, 1024) }, "a string of 1 to 1024 bytes"],
            "cost" => cost[1]}.freeze
    TAKE = RATE.merge("wait" => [number[0, 86_400], "a number of seconds from 0 to 86400"], "place" => text[/\A[0-9]+\.[a-z0-9_:,]+\.[A-Za-z0-9]+\z/, "as it was answered"], "leave" => yes).freeze
    HOLD = TAKE.merge("ttl" => [number[0.1, 86_400], "a number of seconds from 0.1 to 86400"],
                      "tag" => text[/\A[A-Za-z0-9]{1,40}\z/, "a string of 1 to 40 letters and digits"],
                      "who" => [->(value) { value.is_a?(String) && value.bytesize <= 200 && !value.match?(/[\0-\x1f\x7f]/) }, "a line of at most 200 bytes"]).freeze
    RENEW = {"token" => text[/\A[A-Za-z0-9_.-]{1,128}~[A-Za-z0-9]+\z/, "as it was answered"]}.freeze
    END_HOLD = RENEW.merge("spent" => cost[0]).freeze
    ID = {"id" => name, "cursor" => [->(_) { false }, "as it was answered"]}.freeze

    # Returns the document, or raises what is wrong with it.
    def check(document, members, required = nil, what = "document")
      document.each do |name, value|
        hint = what == "job" ? '; what the handler needs goes into "args" or "meta"' : ""
        fits, must_be = members.fetch(name) { raise Invalid.new("wrong #{what}: \"#{name[0, 60]}\" is no member of it#{hint}", name) }
        next if fits[value]

        raise Invalid.new("wrong #{what}: \"#{name}\" must be #{must_be}, not #{JSON.generate(value, max_nesting: 0)[0, 60]}", name)
      end
      raise Invalid.new("wrong #{what}: \"#{required}\" is missing", required) if required && !document.key?(required)

      document
    end
  end
end

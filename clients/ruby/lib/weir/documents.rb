require "digest"
require "json"
require "securerandom"
require_relative "errors"

module Weir
  # Documents are made and answers read here, without a connection.
  module Documents
    module_function

    REFUSALS = {"invalid" => Invalid, "missing" => Missing, "closed" => Closed, "rights" => Refused, "unavailable" => Unreachable}.freeze
    PLAIN = [String, Symbol, Integer, Float, TrueClass, FalseClass, NilClass].freeze

    # Writes JSON as Weir takes it; what JSON has no word for is refused, not turned into text.
    def dump(value, member = nil)
      check(value)
      JSON.generate(value, max_nesting: 1000)
    rescue JSON::GeneratorError, JSON::NestingError, ArgumentError, EncodingError, SystemStackError => e
      raise Invalid.new("not JSON: #{e.message}", member)
    end

    def check(value)
      case value
      when Hash then value.each { |name, one| check(name) && check(one) }
      when Array then value.each { |one| check(one) }
      when *PLAIN then true
      else raise ArgumentError, "a #{value.class}"
      end
    end

    # Writes the document without what is nil, and names the member that cannot be written.
    def write(document)
      "{#{document.compact.map { |name, value| "#{dump(name)}:#{dump(value, name.to_s)}" }.join(',')}}"
    end

    def read(text)
      answer = JSON.parse(text)
      kind = answer["refused"] or return answer
      error = REFUSALS.fetch(kind, Error).new(answer["why"].to_s)
      error.member = answer["member"]
      error.line = answer["line"] if error.is_a?(Invalid)
      raise error
    rescue JSON::ParserError, TypeError, NoMethodError
      raise Unreachable, "the answer is not of Weir's protocol: #{text[0, 80]}"
    end

    # 16 random letters and digits.
    def make_id = SecureRandom.alphanumeric(16).downcase

    def job(type, args, id: nil, queue: nil, key: nil, cost: nil, delay: nil, at: nil, unique: nil, unique_until: nil, batch: nil,
            remember: nil, timeout: nil, max_attempts: nil, traceparent: nil, meta: nil)
      remember ||= 60 unless id
      {remember: remember&.to_i, queue: queue, in: seconds(delay), at: seconds(at), unique: unique,
       unique_until: unique_until.is_a?(String) ? unique_until : seconds(unique_until), batch: batch, id: id || make_id, type: type,
       key: key, cost: cost, args: args, max_attempts: max_attempts, timeout: seconds(timeout), traceparent: traceparent, meta: meta}
    end

    # A number, a time, or a duration of ActiveSupport.
    def seconds(span) = span.nil? || span.is_a?(Integer) ? span : span.to_f

    def add_line(sum, line) = Digest::SHA1.hexdigest(sum + line)[0, 16]
  end
end

require "json"
require "net/http"
require "openssl"
require "redis"
require_relative "errors"

module Weir
  # A carrier raises it when nobody knows whether the call was done.
  class Lost < StandardError; end

  # Was TLS agreed on before it failed? Then the call may have been sent.
  def self.secured?(error) = !error.message.include?("SSL_connect")

  # Carries calls over a connection of redis-rb, by the words that weir:{0}:about tells.
  class RedisCarrier
    def initialize(redis, namespace)
      @redis, @home, @words = redis, "#{namespace}:{0}:", {}
    end

    # A cursor is of the partition that gave it, so it is followed here.
    def call(verb, text)
      prefix = @home
      64.times do
        answer = ask(prefix, verb, text)
        while %w[job cancel].include?(verb) && JSON.parse(answer).keys == ["cursor"]
          answer = ask(prefix, verb, JSON.generate(JSON.parse(text).merge(JSON.parse(answer))))
        end
        return answer unless answer[0, 20].include?('"elsewhere"')

        prefix = JSON.parse(answer)["elsewhere"]
      end
      raise Unreachable, "it is always elsewhere: the partitions of this Redis disagree"
    end

    private

    def ask(prefix, verb, text)
      again = @words.key?(prefix)
      begin
        words = (@words[prefix] ||= read(prefix))[verb]
        raise Unreachable, "the Weir in this Redis does not know #{verb}" unless words

        command(*words, verb, text).dup.force_encoding(Encoding::UTF_8)
      rescue Redis::CommandError => e
        raise failure(e) unless e.message.include?("unction not found")

        @words.delete(prefix)
        raise Unreachable, "Redis: #{e.message}" unless again

        again = false
        retry
      end
    end

    def read(prefix)
      about = JSON.parse(command("HGET", "#{prefix}about", "protocol") || "{}")
      return about["verbs"] if about["protocol"] == 1

      raise JSON::ParserError
    rescue JSON::ParserError
      raise Unreachable, "no Weir of protocol 1 in this Redis (#{prefix}about); a worker of Weir brings it as it begins"
    end

    def command(*words)
      @redis.call(*words)
    rescue Redis::CannotConnectError => e
      raise failure(e)
    rescue OpenSSL::SSL::SSLError => e
      raise Weir.secured?(e) ? Lost.new(e.message) : failure(e)
    rescue Redis::BaseConnectionError, SystemCallError, IOError => e
      raise Lost, e.message
    end

    def failure(error)
      return Unreachable.new("Redis: #{error.message}") unless error.message.match?(/NOPERM|NOAUTH|WRONGPASS/)

      Refused.new("Redis refused: #{error.message}; weir acl producer, weir acl taker print what a user needs")
    end
  end

  # Carries calls to weir serve.
  class HttpCarrier
    TIMEOUT_S = 30
    BYTES_MOST = 2 << 20 # of any document; weir serve reads no more, and may close the connection before it says so

    def initialize(url, token)
      @url, @token = url.chomp("/"), token
    end

    def call(verb, text)
      raise Invalid, "the document has more than #{BYTES_MOST} bytes" if text.bytesize > BYTES_MOST

      uri = URI("#{@url}/api/v1/#{verb}")
      post = Net::HTTP::Post.new(uri, "Content-Type" => verb == "bulk" ? "application/x-ndjson" : "application/json")
      post["Authorization"] = "Bearer #{@token}" if @token
      post.body = text
      read(Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https", open_timeout: 5, read_timeout: TIMEOUT_S,
                                               max_retries: 0) { |http| http.request(post) })
    rescue Errno::ECONNREFUSED, Errno::EHOSTUNREACH, Errno::ENETUNREACH, SocketError, Net::OpenTimeout => e
      raise Unreachable, "#{@url}: #{e.message}"
    rescue OpenSSL::SSL::SSLError => e
      raise Weir.secured?(e) ? Lost : Unreachable, "#{@url}: #{e.message}"
    rescue SystemCallError, IOError, Net::ReadTimeout, Net::HTTPBadResponse => e
      raise Lost, "#{@url}: #{e.message}"
    end

    private

    def read(response)
      body = response.body.to_s.force_encoding(Encoding::UTF_8)
      return body if response.is_a?(Net::HTTPOK) || body.include?('"refused"')

      error = response.is_a?(Net::HTTPServerError) ? Lost : %w[401 403].include?(response.code) ? Refused : Unreachable
      raise error, "#{@url}: HTTP #{response.code}: #{body[0, 200]}"
    end
  end
end

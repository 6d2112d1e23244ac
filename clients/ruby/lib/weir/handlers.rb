require "json"
require_relative "documents"

module Weir
  # What a handler returns to leave what came of its job, any JSON of at most 64 KiB: kept with it where its type is (weir worker --keep). One
  # that is no JSON, or larger, is left out, and the log says so.
  Result = Struct.new(:value)

  # A job that a handler runs.
  class Running
    attr_reader :document, :id, :type, :args, :attempt, :enqueued_at, :key, :traceparent, :meta

    def initialize(document, stopping = nil)
      @document, @stopping = document, stopping
      @id, @type, @args, @attempt, @enqueued_at, @key, @traceparent, @meta =
        document.values_at("id", "type", "args", "attempt", "enqueued_at", "key", "traceparent", "meta")
    end

    # True when the worker ends this child: a job in it was cancelled, or is over its time.
    def cancelled? = @stopping ? @stopping.call : false

    # Tells the true cost, where it was not known before, {tokens: 1210} too: the limits take, or give back, the difference.
    def spent(cost) = @cost = cost.is_a?(Hash) ? cost.transform_values { |n| Integer(n) } : Integer(cost)

    REASON_MOST = 500 # characters; more would only fill the log
    RESULT_MOST = 65_536 # bytes

    # The line that ends the job, as a document.
    def answer(error, returned = nil)
      answer = {"id" => @id, "status" => error.is_a?(Outcome) ? error.status : error ? "retry" : "done", (@cost.is_a?(Hash) ? "spent" : "cost") => @cost}
      after = error.after if error.is_a?(Outcome)
      after = error.retry_after if error.is_a?(Denied)
      answer["after"] = after.to_f if after && after.to_f.finite?
      reason = error.is_a?(Outcome) ? (error.message == error.class.name ? "" : error.message) : error && "#{error.class}: #{error.message}"
      answer["reason"] = reason.b.force_encoding(Encoding::UTF_8).scrub("?")[0, REASON_MOST] unless reason.to_s.empty?
      answer.compact.merge(returned.is_a?(Result) ? leave(returned.value) : {})
    end

    private

    def leave(value)
      size = Documents.dump({result: value}).bytesize - '{"result":}'.size
      return {"result" => value} if size <= RESULT_MOST

      raise Invalid, "#{size} bytes: at most #{RESULT_MOST} are kept"
    rescue Invalid => e
      warn "job #{@id}: wrong result: #{e.message}; it counts as left out"
      {}
    end
  end

  # Handlers by type, and the loop of a child of weir worker --pipe: a job a line in, an answer a line out. The main thread reads,
  # jobs run on threads. What they print goes to the worker's log. When standard input ends, or TERM comes, what was read is finished.
  class Handlers
    attr_reader :by_type

    def initialize
      @by_type = {}
    end

    # Makes the block the handler of that type: called with a Running; returning is done.
    def handler(type, &block)
      raise ArgumentError, "handler: #{type} has one already" if @by_type.key?(type)

      @by_type[type] = block
    end

    # Makes the block the handler of all types that have none.
    def otherwise(&block) = @otherwise = block

    def handles?(type) = @by_type.key?(type) || !@otherwise.nil?

    # Runs a job here and now, and returns its answer.
    def run_one(job)
      handler = @by_type[job.type] || @otherwise or raise "this program has no handler for #{job.type}"
      job.answer(nil, handler.call(job))
    rescue StandardError, ScriptError, SystemExit, NoMemoryError, SystemStackError => e
      job.answer(e)
    end

    # Runs jobs as the child of weir worker --pipe 'TYPE=ruby this.rb' --in-flight N, until it is told to stop; at most that many
    # threads at a time.
    def run(threads: 32)
      Loop.new(self, threads).run
    end
  end

  class Loop
    def initialize(handlers, threads)
      @handlers, @most, @threads, @idle = handlers, threads, [], 0
      @lines, @lock = Queue.new, Mutex.new
      $stdout.flush
      # The descriptors are kept from programs that handlers start. Others find the log, and an empty input.
      @out, @input = $stdout.dup, $stdin.dup
      [@out, @input].each { |io| io.close_on_exec = true }
      @out.sync = true
      $stdout.reopen($stderr)
      $stdout.sync = true
      $stdin.reopen(File::NULL)
      @wake, @woken = IO.pipe
    end

    def run
      before = trap("TERM") { stop }
      write("\n") # ends what was printed before, without a newline
      read
      @threads.size.times { @lines << nil }
      @threads.each(&:join)
    ensure
      trap("TERM", before || "DEFAULT")
    end

    private

    def stop
      @stopping = true
      @woken.write_nonblock(".", exception: false)
    end

    # Begins a job for each line, until the input ends or TERM has come.
    def read
      buffer = String.new
      loop do
        IO.select([@input, @wake])
        return if @stopping

        buffer << @input.readpartial(1 << 18)
        while (size = buffer.index("\n"))
          line = buffer.slice!(0..size).force_encoding(Encoding::UTF_8)
          begin_job(line) unless line.strip.empty?
        end
      end
    rescue EOFError
      nil
    end

    def begin_job(line)
      @lock.synchronize do
        @threads << Thread.new { work } if @lines.size >= @idle && @threads.size < @most
        @lines << line
      end
    end

    def work
      loop do
        @lock.synchronize { @idle += 1 }
        line = @lines.pop
        @lock.synchronize { @idle -= 1 }
        return unless line

        job = Running.new(JSON.parse(line, max_nesting: 1000), -> { @stopping })
        write("#{Documents.dump(answer(job))}\n")
      end
    end

    def answer(job)
      @handlers.run_one(job)
    rescue Exception => e # whatever ends a thread, its job has an answer
      job.answer(e)
    end

    def write(line) = @lock.synchronize { @out.write(line) }
  end
end

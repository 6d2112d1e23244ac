module Weir
  # Everything that this library raises. member: of the document that is wrong, where there is one.
  class Error < StandardError
    attr_accessor :member
  end

  # Redis, or weir serve, does not answer, has no room, or has no Weir in it yet. Nothing was done: trying again is safe.
  class Unreachable < Error; end

  # A login, a token or a right is missing or wrong: a person has to mend it.
  class Refused < Error; end

  # There is no such job, limit or batch.
  class Missing < Error; end

  # The state forbids it: the batch is sealed or cancelled, the job is dead or has ended.
  class Closed < Error; end

  # The call is wrong, and always will be. line: of a bulk, from 1, where there is one.
  class Invalid < Error
    attr_accessor :line

    def initialize(message, member = nil, line = nil)
      super(message)
      @member, @line = member, line
    end
  end

  # The limit allows no slot now. retry_after: seconds until it may; nil: never, as it costs more than the limit can hold.
  class Denied < Error
    attr_reader :retry_after

    def initialize(message, retry_after)
      super(message)
      @retry_after = retry_after
    end
  end

  # The connection was lost on the way: perhaps it was done. Ask again with the same id, that of the job or the name of
  # the batch: then it is done once.
  class Unknown < Error
    attr_reader :id

    def initialize(message, id = nil)
      super(message)
      @id = id
    end
  end

  # The end of a job, raised by its handler.
  class Outcome < StandardError
    attr_reader :after

    def initialize(reason = "", after: nil)
      super(reason)
      @after = after
    end

    def status = "retry"
  end

  # It failed: again after that many seconds, else after the usual backoff.
  class Retry < Outcome; end

  # It will never succeed: kept for a person to look at.
  class Dead < Outcome
    def status = "dead"
  end

  # The provider said stop. The limits of the type pause so long; no attempt is used.
  class Throttled < Outcome
    def initialize(after = nil, reason = "") = super(reason, after: after)
    def status = "throttled"
  end
end

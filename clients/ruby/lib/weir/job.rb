require_relative "client"
require_relative "handlers"

module Weir
  # A class whose calls are jobs:
  #
  #   class Mail
  #     include Weir::Job
  #     weir_options max_attempts: 5
  #     def perform(to) = ...
  #   end
  #   Mail.perform_async("ann")
  #
  # Its type is its name as a file has it: Mail is mail, Billing::Invoice is billing.invoice. The args are an array.
  module Job
    @classes = []

    class << self
      attr_reader :classes

      def included(base)
        base.extend(ClassMethods)
        @classes << base
      end

      def type_of(name) = name.gsub("::", ".").gsub(/([a-z0-9])([A-Z])/, '\1_\2').downcase
    end

    # The Weir::Running that it runs for: id, attempt, spent, cancelled?.
    attr_accessor :job

    module ClassMethods
      # type:, and options of Client#enqueue for all of its jobs.
      def weir_options(type: nil, **options)
        @type = type if type
        @options = (@options || {}).merge(options)
      end

      def weir_type = @type || Job.type_of(name)
      def set(**options) = Set.new(self, (@options || {}).merge(options))
      def perform_async(*args) = set.perform_async(*args)
      def perform_in(span, *args) = set(delay: span).perform_async(*args)
      def perform_at(time, *args) = set(at: time).perform_async(*args)

      # A job for each array of args, of any size; with batch: as Client#enqueue_many.
      def perform_bulk(rows, **options)
        options[:queue] ||= (@options || {})[:queue]
        Weir.client.enqueue_many(weir_type, rows, **options)
      end
    end

    Set = Struct.new(:job, :options) do
      def perform_async(*args) = Weir.client.enqueue(job.weir_type, args, **options)
    end
  end

  @handlers = Handlers.new

  class << self
    # The client of the module's own functions: one to $REDIS_URL, unless you set another.
    attr_writer :client
    # The test mode, while there is one: every client speaks to it.
    attr_accessor :fake

    def client = @client ||= Client.new
    def enqueue(...) = client.enqueue(...)
    def enqueue_many(...) = client.enqueue_many(...)
    def slot(...) = client.slot(...)
    def hold(...) = client.hold(...)
    def handler(type, &block) = @handlers.handler(type, &block)

    # The handlers of this program, those of its Weir::Job classes among them.
    def handlers
      Job.classes.each do |job|
        next if @handlers.by_type.key?(job.weir_type)

        @handlers.handler(job.weir_type) do |running|
          job.new.tap { |one| one.job = running }.perform(*running.args)
        end
      end
      @handlers
    end

    # Runs jobs as a child of weir worker --pipe.
    def run(threads: 32) = handlers.run(threads: threads)
  end
end

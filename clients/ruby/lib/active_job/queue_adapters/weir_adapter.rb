require "active_job"
require "weir"

module ActiveJob
  module QueueAdapters
    # config.active_job.queue_adapter = :weir
    #
    # The type is the class as a file has it: SummaryJob is summary_job, so that "weir rate set summary_job 10/s" holds it. wait and
    # wait_until are Weir's. A priority is a queue: priority 5 of queue mail is queue mail.5; a worker serves them in the order of its -q.
    # Retrying is left to ActiveJob (retry_on, discard_on): what it does not handle makes the job dead, for a person to look at.
    # Weir::Throttled, Retry and Dead may be raised and are not touched.
    class WeirAdapter
      def enqueue(job) = enqueue_at(job, nil)

      def enqueue_at(job, timestamp)
        queue = [job.queue_name, job.priority].compact.join(".")
        job.provider_job_id = ::Weir.client.enqueue(::Weir::Job.type_of(job.class.name), job.serialize, queue: queue, at: timestamp).to_s
      end

      def enqueue_after_transaction_commit? = true

      ::Weir.handlers.otherwise do |running|
        raise "this program has no handler for #{running.type}" unless running.args.is_a?(Hash) && running.args["job_class"]

        begin
          ActiveJob::Base.execute(running.args.merge("provider_job_id" => running.id))
        rescue ::Weir::Outcome
          raise
        rescue StandardError => e
          raise ::Weir::Dead, "#{e.class}: #{e.message}"
        end
      end
    end
  end
end

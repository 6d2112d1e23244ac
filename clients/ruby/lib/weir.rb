# Client of Weir, a job queue on Redis whose workers keep each job type to a rate, exactly.
require_relative "weir/version"
require_relative "weir/errors"
require_relative "weir/documents"
require_relative "weir/carriers"
require_relative "weir/client"
require_relative "weir/handlers"
require_relative "weir/job"

module Weir
  autoload :Testing, File.join(__dir__, "weir/testing")
end

# config.active_job.queue_adapter = :weir finds its adapter; without Rails require it by its name.
ActiveSupport.on_load(:active_job) { require "active_job/queue_adapters/weir_adapter" } if defined?(ActiveSupport.on_load)

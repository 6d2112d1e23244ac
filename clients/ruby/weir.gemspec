require_relative "lib/weir/version"

Gem::Specification.new do |gem|
  gem.name = "weir"
  gem.version = Weir::VERSION
  gem.summary = "Client of Weir, a job queue on Redis whose workers keep each job type to a rate, exactly"
  gem.description = "Enqueues jobs, runs them as a child of weir worker --pipe, and takes slots of limits; with an ActiveJob adapter."
  gem.authors = ["The Weir authors"]
  gem.license = "MIT"
  gem.required_ruby_version = ">= 3.0"
  gem.files = Dir["lib/**/*.rb"] + ["README.md"]
  gem.add_runtime_dependency "redis", ">= 4.8", "< 7"
end

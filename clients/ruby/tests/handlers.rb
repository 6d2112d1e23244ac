# What the story's workers run: clients/tests/README.md.
$LOAD_PATH.unshift(File.join(__dir__, "../lib"))
require "weir"

LOG = File.open(ENV.fetch("STAGE_LOG"), "a")
LOG.sync = true

def note(job, **more)
  LOG.syswrite("#{JSON.generate({id: job.id, type: job.type, args: job.args, attempt: job.attempt, pid: $$, **more})}\n")
end

Weir.handler("story") do |job|
  seen = "#{ENV.fetch('STAGE_LOG')}.#{job.id}"
  first = !File.exist?(seen)
  File.write(seen, "")
  note(job)
  case job.args["do"]
  when "print"
    puts "a stray line"
    print "a stray end"
    system("echo from a program that it started")
  when "retry" then raise Weir::Retry.new("not yet", after: 0.2) if first
  when "kill" then (Process.kill(:KILL, $$) && sleep) if first
  when "fail" then raise ArgumentError, "a plain failure"
  when "dead" then raise Weir::Dead, "no such number"
  when "throttled" then raise Weir::Throttled.new(0.3) if first
  when "spent" then job.spent(3)
  when "result" then next Weir::Result.new(job.args.fetch("value") { "x" * 70_000 })
  when "slow"
    sleep(job.args["seconds"])
    note(job, ended: true)
  when "until cancelled"
    sleep(0.01) until job.cancelled?
    note(job, ended: true)
  end
end

Weir.handler("many") { |job| note(job) }
Weir.handler("report") { |job| note(job) }

Weir.run

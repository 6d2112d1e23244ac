# Holds a client and does what each line says: clients/tests/README.md.
$LOAD_PATH.unshift(File.join(__dir__, "../lib"))
require "weir"

KINDS = {Weir::Unreachable => "unreachable", Weir::Refused => "refused", Weir::Invalid => "invalid", Weir::Missing => "missing",
         Weir::Closed => "closed", Weir::Denied => "denied", Weir::Unknown => "unknown"}.freeze

class Adapter
  def connect(url: nil, token: nil, way: nil, to: nil, ca: nil)
    @fake = Weir::Testing.fake! if way == "fake"
    redis = own(to, url, ca) if to
    @client = Weir::Client.new(redis ? nil : url, token: token, redis: redis)
    @handlers, @ran = Weir::Handlers.new, []
    nil
  end

  def enqueue(type:, args: nil, options: {})
    id = @client.enqueue(type, args, **options)
    {id: id, new: id.new?, locked: id.locked?}
  end

  def enqueue_many(type:, count:, **more)
    @client.enqueue_many(type, (0...count).lazy.map { |n| {n: n} }, **more).to_h
  end

  def take(limit:, **more) = @client.take(limit, **more).to_h
  def slot(limit:, **more) = @client.slot(limit, **more, &:to_h)
  def hold(limit:, seconds: 0, spent: nil, **more)
    @client.hold(limit, **more) do |held|
      held.spent = spent
      @fake ? @fake.move(seconds) : sleep(seconds)
      held.token
    end
  end

  def rate(limit:, **more) = @client.rate(limit, **more).to_h
  def call(verb:, text:) = JSON.parse(@client.carry(verb, text))
  def job(id:) = @client.job(id)
  def wait(id:, seconds:) = @client.wait(id, seconds)
  def cancel(id:) = @client.cancel(id)
  def batch(name:) = @client.batch(name)
  def seal(name:, **more) = @client.seal(name, **more)
  def about = @client.about
  def set_rate(name:, rules:) = @fake.rate(name, rules) && nil
  def keep(type:, seconds:) = @fake.keep(type, seconds)
  def move(seconds:) = @fake.move(seconds)
  def jobs(type:) = @fake.jobs(type)

  def drain(types:)
    types.each { |type| @handlers.by_type[type] = method(:run) }
    @fake.drain(@handlers)
    @ran
  end

  private

  def own(to, url, ca)
    case to
    when "cluster" then Redis.new(cluster: [url])
    when "sentinel" then Redis.new(url: "redis://mymaster", sentinels: [{host: URI(url).host, port: URI(url).port}])
    when "tls" then Redis.new(url: url, ssl_params: {ca_file: ca})
    end
  end

  def run(job)
    @ran << job.args
    raise Weir::Throttled.new(2) if job.args == {"do" => "throttled"} && @ran.count(job.args) == 1

    Weir::Result.new(job.args)
  end
end

adapter = Adapter.new
$stdout.sync = true
$stdin.each_line do |line|
  told = JSON.parse(line, symbolize_names: false)
  arguments = told.except("do").to_h { |name, value| [name.to_sym, name == "options" ? value.transform_keys(&:to_sym) : value] }
  begin
    answer = {ok: adapter.public_send(told["do"], **arguments)}
  rescue Weir::Error => e
    answer = {kind: KINDS[e.class], message: e.message}
    %i[member line retry_after id].each { |name| answer[name] = e.public_send(name) if e.respond_to?(name) }
  end
  puts JSON.generate(answer)
end

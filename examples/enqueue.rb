# Enqueues jobs from Ruby, by the command weir enqueue. See doc/producing.md.
require "json"
require "open3"

def enqueue(type, args, *flags)
  out, err, status = Open3.capture3("weir", "enqueue", type, "-", *flags, stdin_data: JSON.generate(args))
  raise err unless status.success?
  out.strip
end

def enqueue_many(type, rows, batch, *flags)
  lines = rows.map { |row| JSON.generate(row) + "\n" }.join
  _, err, status = Open3.capture3("weir", "enqueue", "--from", "-", type, "--batch", batch, *flags, stdin_data: lines)
  raise err unless status.success?
end

enqueue("remind", { text: "pay" }, "--in", "2h", "--unique", "account-7")
enqueue_many("mail", [{ to: "ann@example.com" }], "week-49", "--then", "report")

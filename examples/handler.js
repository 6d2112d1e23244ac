#!/usr/bin/env node
// A handler in JavaScript: weir worker --pipe sms=examples/handler.js --in-flight 100
//
// One job a line comes in, one answer a line goes out, in any order; standard error goes to the worker's log.
'use strict'

// Stands for a provider: what it answers depends on the number.
async function send (number, text) {
  await new Promise(resolve => setTimeout(resolve, 10))
  return { '+0': 404, '+1': 429, '+2': 500 }[number] || 200
}

async function handle (job) {
  const status = await send(job.args.to, job.args.text)
  if (status === 429) return { status: 'throttled', after: 2 } // seconds; pauses the limits of its type
  if (status === 404) return { status: 'dead', reason: 'no such number' } // is not tried again
  if (status === 500) return { status: 'retry', reason: 'the provider is ill' } // 'after' may say when
  return { status: 'done' }
}

async function answer (job) {
  const end = await handle(job).catch(e => ({ status: 'retry', reason: String(e) }))
  process.stdout.write(JSON.stringify({ id: job.id, ...end }) + '\n')
}

let rest = '' // not by readline, which also splits at U+2028, as it may stand in a job
process.stdin.setEncoding('utf8').on('data', text => {
  const lines = (rest + text).split('\n')
  rest = lines.pop()
  for (const line of lines) answer(JSON.parse(line))
})

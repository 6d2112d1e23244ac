// The stage of the browser test: a private Redis in a folder of its own, weir serve on a free port, a worker, and ways to put
// jobs there. All of it is stopped by its process id.
'use strict';
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');

const WAIT_MS = 20000;
const weir = path.resolve(process.env.WEIR || 'build/weir');

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Waits until ask() gives something; throws after a while.
const until = async (what, ask) => {
    for (const end = Date.now() + WAIT_MS; Date.now() < end; await sleep(30)) {
        const answer = await ask();
        if (answer) return answer;
    }
    throw new Error('waited in vain for: ' + what);
};

class Stage {
    constructor() {
        this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-pages-'));
        this.socket = path.join(this.folder, 'redis.sock');
        this.url = 'unix://' + this.socket;
        this.children = [];
    }

    start(name, words, env = {}) {
        const log = fs.openSync(path.join(this.folder, name + '.log'), 'a');
        const child = spawn(words[0], words.slice(1), { cwd: this.folder, stdio: ['ignore', log, log],
            env: { ...process.env, REDIS_URL: this.url, ...env } });
        fs.closeSync(log);
        this.children.push(child);
        return child;
    }

    log(name) {
        return fs.readFileSync(path.join(this.folder, name + '.log'), 'utf8');
    }

    async open() {
        this.start('redis', ['redis-server', '--port', '0', '--unixsocket', this.socket, '--save', '', '--dir', this.folder]);
        await until('Redis', () => fs.existsSync(this.socket));
        await until('PONG', async () => (await this.redis('PING').catch(() => '')).startsWith('+PONG'));
    }

    // weir serve with these flags; its address.
    async serve(name, ...flags) {
        const child = this.start(name, [weir, 'serve', '--listen', '127.0.0.1:0', ...flags]);
        return until('weir serve', () => {
            if (child.exitCode !== null) throw new Error('weir serve: ' + this.log(name));
            return (this.log(name).match(/http:\/\/127\.0\.0\.1:\d+/) || [])[0];
        });
    }

    worker(...words) {
        return this.start('worker', [weir, 'worker', ...words]);
    }

    // Runs weir; what it prints.
    weir(words, input = '') {
        const run = spawnSync(weir, words, { input, encoding: 'utf8', cwd: this.folder, env: { ...process.env, REDIS_URL: this.url } });
        if (run.status !== 0) throw new Error(`weir ${words.join(' ')}: ${run.stderr}`);
        return run.stdout.trim();
    }

    // One command of any bytes; the beginning of the answer.
    redis(...words) {
        return new Promise((done, fail) => {
            const connection = net.connect(this.socket);
            connection.on('error', fail);
            connection.on('data', (data) => { connection.end(); done(data.toString('latin1')); });
            connection.write(`*${words.length}\r\n`);
            for (const word of words) {
                const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
                connection.write(`$${bytes.length}\r\n`);
                connection.write(bytes);
                connection.write('\r\n');
            }
        });
    }

    async close() {
        for (const child of this.children.reverse()) {
            if (child.exitCode !== null || child.signalCode !== null) continue;
            child.kill('SIGTERM');
            const killer = setTimeout(() => child.kill('SIGKILL'), 5000);
            await new Promise((done) => child.on('exit', done));
            clearTimeout(killer);
        }
        fs.rmSync(this.folder, { recursive: true, force: true });
    }
}

module.exports = { Stage, until, sleep };

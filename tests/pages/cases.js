// What is tried in the browser: each case has a Redis and pages of its own.
'use strict';
const assert = require('node:assert');
const { until, sleep } = require('./stage.js');

const PATHS = ['/', '/types/mail', '/limits', '/limits/mail', '/jobs', '/batches', '/batches/news', '/schedules', '/workers', '/dead', '/redis'];

const lines = (n, text = '{}') => Array.from({ length: n }, () => text).join('\n') + '\n';

// One of everything.
const fill = (stage) => {
    stage.weir(['rate', 'set', 'mail', '10/s', '5000/1d']);
    stage.weir(['enqueue', '--from', '-', 'mail', '--batch', 'news'], lines(300));
    stage.weir(['schedule', 'add', 'nightly', '0 3 * * *', 'report', '{}']);
    stage.weir(['enqueue', 'report', '{"to":"x"}', '--in', '1h', '--id', 'later1']);
};

// A handler that always fails at once.
const DEAD_WORKER = ['-c', '1', '--exec', 'doomed=false', '--exec', 'idle=true'];
const makeDead = async (stage, n) => {
    for (let i = 1; i <= n; i++) stage.weir(['enqueue', 'doomed', `{"n":${i}}`, '--id', `d${i}`, '--max-attempts', '1']);
    const worker = stage.worker(...DEAD_WORKER);
    await until('dead jobs', () => stage.weir(['dead', 'list', '--json']).split('\n').filter((line) => line).length === n);
    return worker;
};

const text = (page, selector = 'main') => page.locator(selector).innerText();
const shows = async (page, wanted) => {
    await until(`the page to show ${wanted}`, async () => {
        const shown = await text(page).catch(() => '');
        return wanted instanceof RegExp ? wanted.test(shown) : shown.includes(wanted);
    });
};
const row = (page, name) => page.locator('tr', { has: page.getByRole('rowheader', { name, exact: true }) });

const cases = {};

cases['each page is whole, by itself and narrow'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const wide = await open(), narrow = await open({ viewport: { width: 360, height: 740 } });
    const plain = await open({ javaScriptEnabled: false });

    fill(stage);
    for (const path of PATHS)
        for (const page of [wide, narrow, plain]) {
            const answer = await page.goto(base + path);
            const policy = answer.headers()['content-security-policy'] || '';
            assert.equal(answer.status(), 200, path);
            assert.match(policy, /default-src 'none'/);
            assert.ok(!/unsafe/.test(policy), policy);
            assert.match(await page.title(), / · weir$/);
            assert.equal(await page.locator('h1').count(), 1, path);
            assert.equal(await page.locator('nav [aria-current=page]').count(), 1, path);
            assert.ok((await text(page)).length > 20, path);
            if (page !== plain)
                assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), path + ' is too wide');
            assert.equal(await page.locator('[style], main script').count(), 0, path);
        }
};

cases['colours follow the system'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const shades = [];

    for (const colorScheme of ['light', 'dark']) {
        const page = await open({ colorScheme });
        await page.goto(base);
        shades.push(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor));
    }
    assert.notEqual(shades[0], shades[1]);
};

cases['the keyboard reaches everything'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    await page.goto(base);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'find');
    await page.keyboard.type('type:mail');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/jobs?q=type%3Amail');
};

cases['without leave nothing can be changed'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open();

    fill(stage);
    for (const path of PATHS) {
        await page.goto(base + path);
        assert.equal(await page.locator('main form[method=post], main a[href^="/ask"]').count(), 0, path);
    }
    const answer = await page.request.post(base + '/api/queues/default/pause', { headers: { origin: base }, form: { back: '/' } });
    assert.ok(answer.status() >= 400, 'a POST was answered ' + answer.status());
};

cases['an open page stays up to date, and keeps what is typed, open and focused'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    stage.weir(['enqueue', '--from', '-'], Array.from({ length: 12 }, (_, i) => `{"type":"type${i}"}`).join('\n'));
    await page.goto(base);
    await page.locator('#live.on').waitFor();
    await page.locator('.filter input').fill('half-ty');
    stage.weir(['enqueue', 'fresh', '{}']);
    await shows(page, 'fresh');
    assert.equal(await page.locator('.filter input').inputValue(), 'half-ty');
    assert.ok(await page.evaluate(() => document.activeElement.name === 'like'));

    await page.goto(base + '/limits/mail');
    await page.locator('#live.on').waitFor();
    await page.locator('.nexts summary').click();
    stage.weir(['rate', 'set', 'mail', '25/s']);
    await shows(page, '25/1s');
    assert.ok(await page.locator('.nexts').evaluate((details) => details.open));
};

cases['a hidden page asks for nothing'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open();

    await page.goto(base);
    await page.locator('#live.on').waitFor();
    const hide = (hidden) => page.evaluate((is) => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => is });
        document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
    await hide(true);
    assert.equal(await text(page, '#live'), 'paused');
    stage.weir(['enqueue', 'fresh', '{}']);
    await sleep(2500); // longer than a page takes to follow
    assert.ok(!(await text(page)).includes('fresh'));
    await hide(false);
    await shows(page, 'fresh');
};

cases['a queue is paused, resumed and purged'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    stage.weir(['enqueue', '--from', '-', 'mail'], lines(3));
    await page.goto(base);
    await row(page, 'default').getByRole('button', { name: 'Pause' }).click();
    await shows(page, 'Queue default is paused');
    assert.equal(new URL(page.url()).pathname, '/');
    await row(page, 'default').getByRole('button', { name: 'Resume' }).click();
    await until('the queue to be open', async () => /open/.test(await row(page, 'default').innerText()));
    await row(page, 'default').getByRole('link', { name: 'Purge' }).click();
    await shows(page, '3 jobs');
    await page.getByRole('link', { name: 'No, go back' }).click();
    await row(page, 'default').getByRole('link', { name: 'Purge' }).click();
    await page.getByRole('button', { name: 'Remove them' }).click();
    await until('the queue to be empty', () => JSON.parse(stage.weir(['status', '--json'])).queues.default?.waiting !== 3);
    assert.equal(new URL(page.url()).pathname, '/');
};

cases['a limit: the slider, a preview, another rate, a pause, its removal'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();
    const rules = () => JSON.parse(stage.weir(['rate', 'show', 'mail', '--json'])).rules.map((rule) => rule.rule).join(' ');

    fill(stage);
    await page.goto(base + '/limits/mail');
    await page.locator('input[type=range]').focus();
    const before = await page.locator('#end-0').innerText();
    for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowLeft');
    assert.notEqual(await page.locator('#end-0').innerText(), before);
    assert.match(await page.locator('#end-0').innerText(), /^in \d+s|^in \d+m/);
    assert.equal(await page.locator('input[name=rules]').inputValue(), '6/1s 5000/1d');
    await sleep(2500); // an update must not take it back
    assert.equal(await page.locator('input[name=rules]').inputValue(), '6/1s 5000/1d');
    await page.locator('input[name=rules]').fill('20/s');
    await page.getByRole('button', { name: 'Preview' }).click();
    await shows(page, 'Nothing is changed yet.');
    assert.equal(rules(), '10/1s 5000/1d');
    await page.getByRole('button', { name: 'Apply' }).click();
    await until('the rate', () => rules() === '20/1s');
    await shows(page, 'set mail 20/1s');
    await page.locator('input[name=rules]').fill('nonsense');
    await page.getByRole('button', { name: 'Apply' }).click();
    await shows(page, 'Not done:');
    await page.getByRole('button', { name: 'Pause' }).click();
    await shows(page, 'by hand');
    await page.getByRole('button', { name: 'Resume' }).click();
    await until('no pause', async () => !(await text(page)).includes('by hand'));
    await page.getByRole('link', { name: 'Remove' }).click();
    await shows(page, '1 type');
    await page.getByRole('button', { name: 'Remove the limit' }).click();
    page.expected = ['404']; // it leads back to a limit that is gone
    await until('no limit', () => stage.weir(['rate', 'list', '--json']) === '');
};

cases['a job is shown, run and cancelled'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    await page.goto(base + '/jobs/later1');
    await shows(page, '"to":"x"');
    await shows(page, 'scheduled');
    await page.getByRole('button', { name: 'Run now' }).click();
    await shows(page, 'waiting');
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel it' }).click();
    await shows(page, 'cancelled');
};

cases['jobs are searched, and what matches is changed as a whole'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    stage.weir(['enqueue', '--from', '-', 'other'], Array.from({ length: 7 }, (_, i) => `{"customer":${i}}`).join('\n'));
    await page.goto(base + '/jobs');
    await page.locator('main input[name=q]').fill('type:other');
    await page.getByRole('button', { name: 'Find' }).click();
    assert.equal(await page.locator('tbody tr').count(), 7);
    await page.goto(base + '/jobs?q=type:other+args.customer:3');
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.goto(base + '/jobs?q=type:mail');
    assert.equal(await page.locator('tbody tr').count(), 50);
    const first = await page.locator('tbody a').first().innerText();
    await page.getByRole('link', { name: 'Go on' }).click();
    assert.equal(await page.locator('tbody tr').count(), 50);
    assert.notEqual(await page.locator('tbody a').first().innerText(), first);
    await page.goto(base + '/jobs?q=size:7');
    await shows(page, 'Not a search:');
    await page.goto(base + '/jobs?q=type:other');
    await page.getByRole('link', { name: 'Cancel' }).click();
    await shows(page, '7 jobs');
    await page.getByRole('button', { name: 'Cancel them' }).click();
    await page.waitForURL('**/jobs?q=type:other');
    page.expected = ['404'];
    await page.locator('tbody a').first().click().catch(() => {});
    await shows(page, /cancelled|No job/);
};

cases['dead jobs are retried and removed'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();
    const dead = () => stage.weir(['dead', 'list', '--json']).split('\n').filter((line) => line).map((line) => JSON.parse(line).id);

    const worker = await makeDead(stage, 3);
    worker.kill('SIGTERM');
    await page.goto(base + '/dead');
    await page.locator('tr', { hasText: 'd1' }).getByRole('button', { name: 'Retry' }).click();
    await until('d1 to be back', () => !dead().includes('d1'));
    await page.goto(base + '/dead?type=doomed');
    await page.locator('tr', { hasText: 'd2' }).getByRole('link', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await until('d2 to be gone', () => !dead().includes('d2'));
    assert.equal(new URL(page.url()).search, '?type=doomed');
    await page.getByRole('link', { name: 'd3' }).click();
    await shows(page, 'exit 1');
};

cases['a batch is paused, resumed and cancelled'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    await page.goto(base + '/batches');
    await page.getByRole('link', { name: 'news' }).click();
    await page.getByRole('button', { name: 'Pause' }).click();
    await shows(page, 'paused');
    await page.getByRole('button', { name: 'Resume' }).click();
    await shows(page, 'running');
    await page.getByRole('link', { name: 'Cancel' }).click();
    await shows(page, '300 jobs');
    await page.getByRole('button', { name: 'Cancel them' }).click();
    await shows(page, 'cancelled');
};

cases['a schedule is removed'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    await page.goto(base + '/schedules');
    await row(page, 'nightly').getByRole('link', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await shows(page, 'No schedules');
};

cases['what a worker does is recorded and drawn'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open();

    fill(stage);
    stage.worker('-c', '4', '--exec', 'mail=true');
    await page.goto(base + '/limits/mail');
    await page.locator('.lane .start').first().waitFor();
    await page.goto(base + '/types/mail');
    await shows(page, /\d+ done/);
    await page.goto(base + '/workers');
    await shows(page, 'working');
};

cases['a worker is made quiet, and stopped'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    const worker = stage.worker('-c', '1', '--exec', 'idle=true', '--lease', '2s');
    await page.goto(base + '/workers');
    await shows(page, 'working');
    await page.getByRole('button', { name: 'Quiet' }).click();
    await shows(page, 'quiet');
    await page.getByRole('link', { name: 'Stop' }).click();
    await shows(page, '0 jobs');
    await page.getByRole('button', { name: 'Stop it' }).click();
    await until('the end of the worker', () => worker.exitCode !== null);
    await shows(page, 'No worker is alive');
};

const NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u200b\u0007';
const RAW = Buffer.concat([Buffer.from(NASTY), Buffer.from([0xff, 0xfe, 0, 0xc0, 0xbc]), Buffer.from("' onmouseover='alert(3)")]);

cases['what others push is shown as it is, and never run'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();
    const body = (id) => JSON.stringify({ id, type: 'mail', key: NASTY, args: { [NASTY]: NASTY, long: '<'.repeat(10240) } });

    fill(stage);
    stage.weir(['rate', 'set', 'mail', '1/1h,by=key']);
    await stage.redis('RPUSH', 'weir:{0}:queue:default', body('evil'), RAW);
    await stage.redis('HSET', 'weir:{0}:types', RAW, RAW);
    await stage.redis('HSET', 'weir:{0}:limits', RAW, RAW);
    await stage.redis('HSET', 'weir:{0}:schedules', RAW, RAW);
    await stage.redis('SADD', 'weir:{0}:queues', RAW);
    await stage.redis('LPUSH', 'weir:{0}:changes', JSON.stringify({ at: 1, by: NASTY, what: 'set mail ' + NASTY }));
    const query = `?q=${encodeURIComponent(NASTY)}&like=${encodeURIComponent(NASTY)}&problem=${encodeURIComponent(NASTY)}`;
    page.expected = ['404', '400'];
    for (const path of [...PATHS, '/jobs/evil', '/keys/mail', '/ask', '/' + encodeURIComponent(NASTY)])
        for (const address of [path, path + query]) {
            await page.goto(base + address);
            assert.equal(await page.locator('main script, main img, [onerror], [onmouseover]').count(), 0, address);
        }
    await page.goto(base + '/jobs/evil');
    await shows(page, '<script>alert(1)</script>');
    await shows(page, '\\u202E');
};

cases['--hide-args hides payloads, keys and reasons'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--hide-args');
    const page = await open();

    stage.weir(['enqueue', 'mail', '{"secret":"s3cret"}', '--key', 'k3y', '--id', 'j1']);
    for (const path of ['/jobs/j1', '/jobs?q=type%3Amail', '/']) {
        await page.goto(base + path);
        assert.ok(!/s3cret|k3y/.test(await page.content()), path);
    }
};

module.exports = cases;

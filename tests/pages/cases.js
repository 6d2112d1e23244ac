// What is tried in the browser: each case has a Redis and pages of its own.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Stage, until, sleep } = require('./stage.js');

const PATHS = ['/', '/types/mail', '/limits', '/limits/mail', '/keys/keyed', '/jobs', '/batches', '/batches/news', '/schedules', '/workers', '/dead', '/redis'];

const lines = (n, text = '{}') => Array.from({ length: n }, () => text).join('\n') + '\n';

// One of everything.
const fill = (stage) => {
    stage.weir(['rate', 'set', 'mail', '10/s', '5000/1d']);
    stage.weir(['rate', 'set', 'keyed', '1/1h,by=args.to']);
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

cases['a page says that Redis or weir serve is away, how old it is, and comes back'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open(), away = page.locator('#away');
    const redis = stage.children[0], serve = stage.children[1];

    page.expected = ['503', 'ERR_'];
    fill(stage);
    await page.goto(base);
    await page.locator('#live.on').waitFor();
    assert.equal(await away.isVisible(), false);
    redis.kill('SIGSTOP');
    await away.waitFor();
    assert.match(await away.innerText(), /^Redis does not answer\. What is shown was read \d+s ago\.$/);
    assert.equal(await text(page, '#live'), 'not live');
    await shows(page, 'mail'); // it stays
    redis.kill('SIGCONT');
    await away.waitFor({ state: 'hidden' });
    stage.weir(['enqueue', 'fresh', '{}']);
    await shows(page, 'fresh');
    assert.equal(await text(page, '#live'), 'live');

    redis.kill('SIGKILL');
    await away.waitFor();
    await page.reload();
    await shows(page, 'Redis does not answer');
    assert.equal(await away.isVisible(), false); // nothing old is shown
    await stage.open();
    stage.weir(['enqueue', 'fresher', '{}']);
    await shows(page, 'fresher');

    serve.kill('SIGTERM');
    await until('weir serve to be missed', async () => /^weir serve does not answer\. What is shown was read /.test(await away.innerText()));
    await stage.serve('again', '--listen', base.replace('http://', ''));
    await away.waitFor({ state: 'hidden' });
    stage.weir(['enqueue', 'freshest', '{}']);
    await shows(page, 'freshest');
};

// The job stands behind so many others that a page does not come to it.
const fillDeep = (stage) => {
    stage.weir(['enqueue', 'mail', '{"to":"deep"}', '--id', 'deep']);
    stage.weir(['enqueue', '--from', '-', 'mail'], lines(400000));
};

cases['a job far down a queue is found by going on'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open({ javaScriptEnabled: false });

    fillDeep(stage);
    await page.goto(base + '/jobs/deep');
    await shows(page, 'Not found yet.');
    assert.match(await text(page), /looked at [\d,]+ of about 400,001/);
    for (let clicks = 0; clicks < 400 && await page.getByRole('link', { name: 'Go on' }).count(); clicks++)
        await page.getByRole('link', { name: 'Go on' }).click();
    await shows(page, '"deep"');
};

cases['the script goes on by itself, and ends where there is no such job'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open();

    page.expected = ['404', 'ERR_ABORTED'];
    fillDeep(stage);
    await page.goto(base + '/jobs/deep').catch(() => {});
    await shows(page, '"deep"');
    await page.locator('#live.on').waitFor();
    await page.goto(base + '/jobs/none').catch(() => {});
    await shows(page, 'no such job');
    assert.equal(await page.evaluate(() => history.length), 3); // those on the way are not kept
};

cases['a mistyped address leads on'] = async ({ stage, open }) => {
    const base = await stage.serve('serve');
    const page = await open();

    page.expected = ['404'];
    fill(stage);
    assert.equal((await page.goto(base + '/limit/mail')).status(), 404);
    await shows(page, 'Not found');
    await page.locator('main').getByRole('link', { name: 'limits' }).click();
    await page.getByRole('link', { name: 'mail', exact: true }).click();
    await shows(page, '5000/1d');
};

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
    await until('no limit', () => !stage.weir(['rate', 'list', '--json']).includes('"name":"mail"'));
};

// What the slider says of each type, at a stop from the left.
const atStop = async (page, stop) => {
    await page.locator('input[type=range]').evaluate((range, value) => {
        range.value = value;
        range.dispatchEvent(new Event('input', { bubbles: true }));
    }, stop);
    return { rules: await page.locator('input[name=rules]').inputValue(), said: await text(page, '#moved'),
        ends: await page.locator('[id^=end-]').allInnerTexts() };
};
const seconds = (words) => (words.match(/\d+[dhms]/g) || []).reduce((sum, part) => sum + parseInt(part) * { d: 86400, h: 3600, m: 60, s: 1 }[part.at(-1)], 0);

cases['the slider moves a limit of several types'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    stage.weir(['rate', 'set', 'shared', '10/s,burst=1', '5000/1d']);
    for (const [type, jobs] of [['letters', 600], ['invoices', 300], ['idle', 0]]) {
        stage.weir(['rate', 'use', type, 'shared']);
        if (jobs) stage.weir(['enqueue', '--from', '-', type], lines(jobs));
    }
    stage.weir(['rate', 'set', 'other', '1/s,burst=1']);
    stage.weir(['rate', 'use', 'letters', 'other']);
    stage.worker('-c', '1', '--exec', 'letters=sleep 60', '--exec', 'invoices=sleep 60');
    await page.goto(base + '/limits/shared');
    await until('both types', async () => await page.locator('[id^=end-]').count() === 2);
    const names = await page.locator('tr:has([id^=end-]) th').allInnerTexts();
    const half = await atStop(page, 4), whole = await atStop(page, 9), ten = await atStop(page, 16);
    assert.equal(half.rules, '5/1s,burst=1 5000/1d');
    assert.equal(half.said, half.rules);
    assert.equal(ten.rules, '100/1s,burst=1 5000/1d');
    const invoices = names.indexOf('invoices'), letters = names.indexOf('letters');
    assert.ok(seconds(half.ends[invoices]) > 1.8 * seconds(whole.ends[invoices]), JSON.stringify([half, whole]));
    assert.ok(seconds(ten.ends[invoices]) < 8, JSON.stringify(ten));
    assert.ok(Math.abs(seconds(half.ends[letters]) - seconds(ten.ends[letters])) < 10, 'another limit holds letters: ' + JSON.stringify([half, ten]));
};

cases['the slider moves a limit of keyed rules'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();
    const rules = (name) => JSON.parse(stage.weir(['rate', 'show', name, '--json'])).rules.map((rule) => rule.rule).join(' ');

    stage.weir(['rate', 'set', 'both', '3/s,by=key', '8/s']);
    stage.weir(['rate', 'set', 'crm', '2/1h,by=args.customer']);
    stage.weir(['enqueue', '--from', '-', 'crm'], Array.from({ length: 60 }, (_, i) => `{"customer":${i % 3}}`).join('\n'));
    stage.worker('-c', '2', '--exec', 'crm=true');
    await page.goto(base + '/limits/crm');
    await page.locator('.nexts summary').click();
    await until('all keys asleep', async () => await page.locator('.nexts tbody tr').count() === 3);
    assert.match(await text(page, '.nexts tbody'), /crm\s+[012]\s/);
    const stop = await atStop(page, 5);
    assert.match(stop.rules, /^\d+\/1h,by=args\.customer$/);
    assert.match(stop.ends[0], /^in /); // by the longest lane that is known
    await page.getByRole('button', { name: 'Apply' }).click();
    await until('the rate', () => rules('crm') === stop.rules);

    await page.goto(base + '/limits/both');
    // The rule for all keys is moved.
    assert.match((await atStop(page, 4)).rules, /^3\/1s,by=key 5\/1s$/);
};

cases['the slider moves a limit that is paused'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    stage.weir(['rate', 'set', 'mail', '10/s,burst=1']);
    stage.weir(['enqueue', '--from', '-', 'mail'], lines(600));
    stage.weir(['rate', 'pause', 'mail', '30m']);
    await page.goto(base + '/limits/mail');
    await shows(page, 'paused');
    const half = await atStop(page, 4), ten = await atStop(page, 16);
    assert.ok(seconds(half.ends[0]) > 31.5 * 60 && seconds(half.ends[0]) < 33 * 60, half.ends[0]);
    assert.ok(seconds(ten.ends[0]) > 29 * 60 && seconds(ten.ends[0]) < 31 * 60, ten.ends[0]);
    await page.getByRole('button', { name: 'Apply' }).click();
    await shows(page, 'set mail 100/1s');
    await shows(page, 'paused'); // another rate ends no pause
    await page.getByRole('button', { name: 'Resume' }).click();
    await until('no pause', async () => !(await text(page)).includes('paused'));
};

cases['a job is shown, run and cancelled'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    page.expected = ['404'];
    fill(stage);
    await page.goto(base + '/jobs/later1');
    await shows(page, '"to":"x"');
    await shows(page, 'scheduled');
    await page.getByRole('button', { name: 'Run now' }).click();
    await shows(page, 'waiting');
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel it' }).click();
    await shows(page, 'no such job here'); // it waited, so it is gone at once
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
    await page.goto(base + '/jobs?q=args.customer:3+reason:"state:x+y"');
    const chip = (name) => page.locator('.chips').getByRole('link', { name, exact: true }), q = () => page.locator('main input[name=q]').inputValue();
    await chip('dead').click();
    assert.equal(await q(), 'args.customer:3 reason:"state:x y" state:dead');
    await chip('dead').click();
    await page.goto(base + '/jobs?q=args.customer:3+state:dead');
    await chip('waiting').click();
    await chip('other').click();
    assert.equal(await q(), 'args.customer:3 state:waiting type:other');
    await chip('other').click();
    assert.equal((await q()).trim(), 'args.customer:3 state:waiting');
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
    await page.locator('.buttons').getByRole('link', { name: 'Retry' }).click();
    await shows(page, 'Retry all dead jobs like state:dead type:doomed?');
    await shows(page, '1 job');
    await page.getByRole('link', { name: 'No, go back' }).click();
    await page.getByRole('link', { name: 'd3', exact: true }).click();
    await shows(page, 'exit 1');
};

cases['only the dead of one reason and time are removed'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open({ viewport: { width: 360, height: 740 } });
    const left = () => stage.weir(['dead', 'list', '--json']).split('\n').filter((line) => line).length;

    for (const [minutes, reason] of [[180, 'no route'], [90, 'no route'], [90, 'bad deploy'], [1, 'bad deploy']]) {
        const since = (Date.now() - minutes * 60000) * 1000;
        for (let i = 0; i < 9; i++) await stage.redis('ZADD', 'weir:{0}:dead', String(since), `x${minutes}${reason[0]}${i} default/mail/ ${reason} ${i}\n{"id":"${minutes}${reason[0]}${i}","type":"mail"}`);
    }
    await page.goto(base + '/dead');
    await shows(page, 'bad deploy #');
    assert.match(await page.locator('td time').first().getAttribute('title'), /\d.* · \d{4}-.* UTC$/); // the time here, and in UTC
    assert.ok(await page.evaluate(() => document.documentElement.scrollHeight) <= 5 * 740, 'five screens');
    await page.getByLabel('Died in the last').fill('2h');
    await page.getByLabel('but not in the last').fill('10m');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('link', { name: 'A link that keeps these hours' }).click();
    await page.waitForURL(/newer=\d{4}-\d\d-\d\dT.*Z&older=\d{4}-.*Z$/);
    await page.locator('tr', { hasText: 'bad deploy #' }).getByRole('link', { name: 'Remove' }).click();
    await shows(page, 'bad deploy #');
    await shows(page, '9 jobs');
    assert.ok(!(await text(page)).includes('no route'));
    await page.getByRole('button', { name: 'Remove them' }).click();
    await until('nine to be gone', () => left() === 27);
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
    await page.getByRole('link', { name: 'nightly', exact: true }).click();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('link', { name: /^nightly\./ }).waitFor();
    await shows(page, 'waiting');
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
    stage.weir(['rate', 'set', 'mail', '1/1h,by=key']);
    stage.weir(['rate', 'pause', 'mail/k3y']);
    for (const path of ['/jobs/j1', '/jobs?q=type%3Amail', '/', '/keys/mail', '/keys/mail?key=k3y', '/limits/mail']) {
        await page.goto(base + path);
        assert.ok(!/s3cret|k3y/.test(await page.content()), path);
    }
};

// ---- For everybody

// Elements whose text has too little contrast with what is behind it, as WCAG computes it.
const paleTexts = () => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const bytesOf = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
    const light = (color) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => {
        const v = color[i] / 255;
        return sum + part * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    }, 0);
    const ground = (element) => {
        const layers = [];
        for (let at = element; at; at = at.parentElement) layers.push(bytesOf(getComputedStyle(at).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
    };
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement, style = getComputedStyle(element);
        if (!text || !element.getBoundingClientRect().width || style.visibility === 'hidden' || element.closest('.hidden, .skip')) continue;
        const behind = ground(element), pair = [light(over(bytesOf(style.color), behind)), light(behind)].sort((a, b) => b - a);
        const ratio = (pair[0] + 0.05) / (pair[1] + 0.05), size = parseFloat(style.fontSize);
        if (ratio < (size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${element.className}: ${text}`);
    }
    for (const control of document.querySelectorAll('button, a.button, input:not([type=hidden], [type=range]), select')) {
        const style = getComputedStyle(control), behind = ground(control.parentElement), inside = ground(control);
        const ratio = (a, b) => [light(over(bytesOf(a), b)), light(b)].sort((x, y) => y - x).reduce((x, y) => (x + 0.05) / (y + 0.05));
        const filled = ratio(style.backgroundColor, behind), edge = ratio(style.borderTopColor, behind);
        if (control.getBoundingClientRect().width && Math.max(filled, edge) < 3) found.push(`${edge.toFixed(2)} edge of ${control.outerHTML}`);
        if (control.placeholder && ratio(getComputedStyle(control, '::placeholder').color, inside) < 4.5) found.push('placeholder of ' + control.outerHTML);
    }
    return found;
};

// Controls without a name, and headings that leave out a level.
const unnamed = () => {
    const found = [], levels = [...document.querySelectorAll('h1, h2, h3')].map((heading) => Number(heading.nodeName[1]));
    for (const control of document.querySelectorAll('a, button, summary, input:not([type=hidden]), select, textarea')) {
        const name = control.getAttribute('aria-label') || [...(control.labels || [])].map((label) => label.textContent).join('') || control.textContent;
        if (!name.trim()) found.push(control.outerHTML);
    }
    levels.forEach((level, i) => { if (level > (levels[i - 1] || 0) + 1) found.push(`h${level} behind h${levels[i - 1] || 0}`); });
    for (const cell of document.querySelectorAll('thead th')) if (!cell.textContent.trim()) found.push('a column without a name');
    for (const drawing of document.querySelectorAll('main svg')) if (drawing.getAttribute('aria-hidden') !== 'true') found.push('a drawing that is read aloud');
    return found;
};

cases['text has contrast, controls have names'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');

    fill(stage);
    const worker = await makeDead(stage, 2);
    stage.weir(['enqueue', '--from', '-'], lines(100, '{"type":"doomed","max_attempts":1}')); // of more than a page shows it says so
    await until('more dead jobs', async () => (await stage.redis('ZCARD', 'weir:{0}:dead')).startsWith(':102'));
    worker.kill('SIGTERM');
    stage.weir(['queue', 'pause', 'default']);
    for (const colorScheme of ['light', 'dark']) {
        const page = await open({ colorScheme });
        for (const path of [...PATHS, '/limits/mail?rules=9/s', '/jobs?q=type:mail', '/jobs?q=size:1', '/jobs/d1', '/?problem=no', '/ask?do=purge&name=default&back=/']) {
            await page.goto(base + path);
            await page.evaluate(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));
            assert.deepEqual((await page.evaluate(paleTexts)).map((found) => `${colorScheme} ${path}: ${found}`), []);
            assert.deepEqual(await page.evaluate(unnamed), [], path);
        }
    }
};

// Presses Tab until what has the focus is called that; each stop on the way must show it.
const tabTo = async (page, name) => {
    for (let i = 0; i < 200; i++) {
        await page.keyboard.press('Tab');
        const at = await page.evaluate(() => {
            const element = document.activeElement, style = getComputedStyle(element);
            return { name: element.getAttribute('aria-label') || element.textContent.trim() || [...(element.labels || [])].map((label) => label.textContent.trim()).join(''),
                seen: element === document.body || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) };
        });
        assert.ok(at.seen, 'nothing shows that this has the focus: ' + at.name);
        if (at.name === name || at.name.startsWith(name + ' ')) return; // a button names its thing too
    }
    throw new Error('Tab does not reach ' + name);
};
const press = async (page, name) => {
    await tabTo(page, name);
    await page.keyboard.press('Enter');
};

cases['each page and action, by keyboard alone'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();
    const rules = () => JSON.parse(stage.weir(['rate', 'show', 'mail', '--json'])).rules.map((rule) => rule.rule).join(' ');

    fill(stage);
    const worker = await makeDead(stage, 2);
    for (const path of PATHS) { // Tab comes to everything once
        await page.goto(base + path);
        const wanted = await page.evaluate(() => [...document.querySelectorAll('a, button, summary, input:not([type=hidden]), select')]
            .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('details:not([open]) > :not(summary)')).length);
        const seen = new Set();
        for (let i = 0; i < wanted; i++) {
            await page.keyboard.press('Tab');
            seen.add(await page.evaluate(() => [...document.querySelectorAll('*')].indexOf(document.activeElement)));
        }
        assert.equal(seen.size, wanted, path);
    }
    await page.goto(base);
    await press(page, 'Pause');
    await shows(page, 'Queue default is paused');
    await press(page, 'Purge…');
    await shows(page, 'Purge queue default?');
    await press(page, 'No, go back');
    await shows(page, 'Queue default is paused');
    await press(page, 'Resume');
    await until('an open queue', async () => /open/.test(await row(page, 'default').innerText()));

    await page.goto(base + '/limits/mail');
    await press(page, 'The next 20 starts');
    await page.locator('.nexts[open]').waitFor();
    await tabTo(page, 'Move the rate');
    await page.keyboard.press('ArrowRight');
    const moved = await page.locator('input[name=rules]').inputValue();
    await press(page, 'Apply');
    await until('the rate', () => rules() === moved);
    await shows(page, 'set mail ' + moved);
    await page.locator('details.how summary').click();
    await page.getByLabel('For').fill('10m');
    await page.getByLabel('Why').fill('INC-9');
    await press(page, 'Pause');
    await shows(page, 'by hand');
    await until('its reason', () => stage.weir(['rate', 'show', 'mail']).includes('INC-9'));
    await press(page, 'Resume');
    await until('no pause', async () => !(await text(page).catch(() => 'by hand')).includes('by hand'));

    await page.goto(base + '/dead');
    await press(page, 'Remove… d1');
    await shows(page, 'Remove dead job');
    await press(page, 'Remove it');
    await until('one dead job', () => stage.weir(['dead', 'list', '--json']).split('\n').length === 1);
    await shows(page, 'They do not run again');
    await page.goto(base + '/batches/news');
    await press(page, 'Cancel…');
    await shows(page, 'Cancel batch');
    await press(page, 'Cancel them');
    await shows(page, 'cancelled');
    await page.goto(base + '/schedules');
    await press(page, 'Remove…');
    await shows(page, 'Remove schedule');
    await press(page, 'Remove it');
    await shows(page, 'No schedules');
    await page.goto(base + '/jobs/later1');
    await press(page, 'Run now job later1');
    await shows(page, 'held'); // the worker that is there has no handler for it
    await press(page, 'Cancel… later1');
    await shows(page, 'Cancel job later1?');
    await press(page, 'Cancel it');
    await shows(page, 'no such job here');
    await page.goto(base + '/workers');
    await press(page, 'Quiet');
    await shows(page, 'quiet');
    await press(page, 'Stop…');
    await shows(page, 'Stop worker');
    await press(page, 'Stop it');
    await until('the end of the worker', () => worker.exitCode !== null);
    await page.goto(base + '/dead');
    await press(page, 'Retry job d2');
    await until('no dead job', () => stage.weir(['dead', 'list', '--json']) === '');
    await shows(page, 'No dead jobs');
    await page.goto(base + '/limits/mail');
    await press(page, 'Remove… mail');
    await shows(page, 'Remove limit mail?');
    page.expected = ['404']; // it leads back to a limit that is gone
    await press(page, 'Remove the limit');
    await until('no limit', () => !stage.weir(['rate', 'list', '--json']).includes('"name":"mail"'));
};

// Those that do the same to different things have different names.
const ambiguous = () => {
    const names = new Map();
    for (const control of document.querySelectorAll('main button, main a.button')) {
        const form = control.closest('form'), name = control.textContent;
        const does = control.href || form.getAttribute('action') + new URLSearchParams(new FormData(form));
        if (names.has(name) && names.get(name) !== does) names.set(name + ' (twice)', does);
        else names.set(name, does);
    }
    return [...names.keys()].filter((name) => name.endsWith('(twice)'));
};

cases['each action is told by the name of its thing'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();

    fill(stage);
    stage.weir(['enqueue', 'mail', '{}', '--queue', 'second']);
    stage.weir(['schedule', 'add', 'hourly', '@hourly', 'report', '{}']);
    const worker = await makeDead(stage, 2);
    for (const path of [...PATHS, '/jobs?q=type:mail', '/jobs/d1']) {
        await page.goto(base + path);
        assert.deepEqual(await page.evaluate(ambiguous), [], path);
    }
    await page.goto(base);
    await page.getByRole('button', { name: 'Pause queue second', exact: true }).click();
    await shows(page, 'Queue second is paused');
    worker.kill('SIGTERM');
};

cases['each action works without the script'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open({ javaScriptEnabled: false });
    const reload = (wanted) => until(wanted, async () => (await page.reload(), (await text(page)).includes(wanted)));

    fill(stage);
    const worker = await makeDead(stage, 2);
    await page.goto(base);
    await row(page, 'default').getByRole('button', { name: 'Pause' }).click();
    await reload('Queue default is paused');
    await row(page, 'default').getByRole('button', { name: 'Resume' }).click();
    await page.goto(base + '/limits/mail');
    assert.equal(await page.locator('input[type=range]').isVisible(), false); // what needs the script is not there
    await page.locator('input[name=rules]').fill('20/s');
    await page.getByRole('button', { name: 'Preview' }).click();
    assert.match(await text(page), /Nothing is changed yet/);
    await page.getByRole('button', { name: 'Apply' }).click();
    await reload('set mail 20/1s');
    await page.locator('input[name=rules]').fill('nonsense');
    await page.getByRole('button', { name: 'Apply' }).click();
    assert.match(await text(page), /Not done:/);
    await page.locator('.nexts summary').click();
    assert.ok(await page.locator('.nexts tbody tr').first().isVisible());
    await page.goto(base + '/dead');
    await page.locator('tbody').getByRole('link', { name: 'Remove' }).first().click();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await until('one dead job', () => stage.weir(['dead', 'list', '--json']).split('\n').length === 1);
    await page.goto(base + '/jobs?q=type:mail');
    await page.getByRole('link', { name: 'Go on' }).click();
    assert.equal(await page.locator('tbody tr').count(), 50);
    await page.goto(base + '/jobs/later1');
    await page.getByRole('button', { name: 'Run now' }).click();
    await until('the job to be due', () => JSON.parse(stage.weir(['job', 'show', 'later1', '--json'])).state !== 'scheduled');
    await page.goto(base + '/batches/news');
    await page.getByRole('button', { name: 'Pause' }).click();
    await reload('paused');
    await page.goto(base + '/workers');
    await page.getByRole('link', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Stop it' }).click();
    await until('the end of the worker', () => worker.exitCode !== null);
};

cases['a token of each role'] = async ({ stage, open }) => {
    const tokens = { viewer: 'v'.repeat(24), operator: 'o'.repeat(24), producer: 'p'.repeat(24) };
    const file = path.join(stage.folder, 'tokens');

    fs.writeFileSync(file, Object.entries(tokens).map(([role, token]) => `${role} ${token}\n`).join(''), { mode: 0o600 });
    const base = await stage.serve('serve', '--allow-actions', '--token-file', file);
    fill(stage);
    for (const role of Object.keys(tokens)) {
        const page = await open();
        page.expected = ['401', '403', '404'];
        await page.goto(base);
        assert.equal(await page.locator('h1').innerText(), 'Log in');
        await page.getByLabel('Token').fill('x'.repeat(24));
        await page.keyboard.press('Enter');
        await shows(page, 'not known');
        await page.getByLabel('Token').fill(tokens[role]);
        await page.keyboard.press('Enter');
        await page.waitForURL(base + '/');
        if (role === 'producer') { // it may enqueue, and see nothing
            assert.ok(!(await text(page)).includes('mail'));
            continue;
        }
        for (const at of PATHS) {
            assert.equal((await page.goto(base + at)).status(), 200, at);
            const buttons = await page.locator('main form[method=post], main a[href^="/ask"]').count();
            assert.ok(role === 'operator' || buttons === 0, role + ' ' + at);
        }
        await page.goto(base);
        await page.locator('#live.on').waitFor();
        if (role === 'viewer') {
            const answer = await page.request.post(base + '/api/queues/default/pause', { headers: { origin: base }, form: { back: '/' } });
            assert.equal(answer.status(), 403);
            assert.equal((await page.goto(base + '/ask?do=purge&name=default')).status(), 404);
        } else {
            await row(page, 'default').getByRole('button', { name: 'Pause' }).click();
            await shows(page, 'Queue default is paused');
        }
    }
};

cases['keys: the longest, one that is looked for, paused and resumed'] = async ({ stage, open }) => {
    const base = await stage.serve('serve', '--allow-actions');
    const page = await open();
    const send = (to, n) => stage.weir(['enqueue', '--from', '-', 'keyed'], lines(n, JSON.stringify({ to })));

    stage.weir(['rate', 'set', 'keyed', '1/1h,by=args.to']);
    send('acme', 40);
    send('bolt & co', 20);
    send(NASTY, 3);
    stage.worker('-c', '1', '--exec', 'keyed=true');
    await until('parked jobs', () => JSON.parse(stage.weir(['rate', 'keys', 'keyed', '--json'])).parked === 60);
    await page.goto(base + '/limits/keyed');
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await shows(page, 'Keys of keyed');
    await shows(page, '<script>alert(1)</script>');
    assert.equal(await page.locator('main script, main img, [onerror], [onmouseover]').count(), 0);
    assert.deepEqual((await page.locator('tbody th').allInnerTexts()).slice(0, 2), ['acme', 'bolt & co']);
    await row(page, 'bolt & co').getByRole('button', { name: 'Pause' }).click();
    await until('its pause', async () => /paused by hand, until it is resumed/.test(await row(page, 'bolt & co').innerText()));
    assert.match(stage.weir(['status']), /keyed: to bolt & co is paused until it is resumed/);
    stage.weir(['rate', 'pause', 'keyed/bolt & co', '--reason', 'INC-7']);
    await until('why', async () => /until it is resumed: INC-7/.test(await row(page, 'bolt & co').innerText()));
    await page.locator('input[name=key][type=search]').fill('acme');
    await page.getByRole('button', { name: 'Show' }).click();
    await until('one key', async () => (await page.locator('tbody th').allInnerTexts()).join() === 'acme');
    await page.getByRole('link', { name: 'all keys' }).click();
    await row(page, 'bolt & co').getByRole('button', { name: 'Resume' }).click();
    await until('its end', async () => /closed/.test(await row(page, 'bolt & co').innerText()));
    await page.getByRole('link', { name: 'bolt & co' }).click();
    await shows(page, 'Jobs');
    assert.equal(await page.locator('tbody tr').count(), 19);
};

// ---- What an operator is there for, from the overview on: at most two clicks; what is typed is no click.

const TASKS = {
    'a type is stuck': async ({ stage, begin }) => {
        stage.weir(['enqueue', '--from', '-', 'mail'], lines(30));
        stage.worker('--exec', 'other=true');
        const { page } = await begin();
        await shows(page, 'No worker takes mail: 30 jobs');
    },
    'a provider is down: one type without a limit stops': async ({ stage, begin }) => {
        const ends = (type) => JSON.parse(stage.weir(['type', 'show', type, '--json'])).done;

        for (const type of ['mail', 'other']) stage.weir(['enqueue', '--from', '-', type], lines(3));
        const { page, click } = await begin();
        await click(page.getByRole('link', { name: 'mail', exact: true }));
        await click(page.getByRole('button', { name: 'Pause' }));
        await page.getByRole('button', { name: 'Resume' }).waitFor();
        stage.worker('--exec', 'mail=true', '--exec', 'other=true');
        await until('the other type to run', () => ends('other') === 3);
        assert.equal(ends('mail'), 0);
    },
    'dead of a bad deploy: those of one reason and hour': async ({ stage, begin }) => {
        const bury = (minutes, reason, n) => stage.redis('ZADD', 'weir:{0}:dead', ...Array.from({ length: n }, (_, i) => [String((Date.now() - minutes * 60000) * 1000),
            `${reason[0]}${minutes}.${i} default/mail/ ${reason} ${i}\n{"id":"${reason[0]}${minutes}.${i}","type":"mail"}`]).flat());

        for (const [minutes, reason, n] of [[180, 'bad deploy', 9], [30, 'bad deploy', 2000], [30, 'no route', 9]]) await bury(minutes, reason, n);
        const { page, click, search } = await begin();
        await search('state:dead died:<1h reason:"bad deploy"');
        await click(page.getByRole('link', { name: 'Remove' }).first());
        await shows(page, '2,000 jobs');
        await click(page.getByRole('button', { name: 'Remove them' }));
        await until('the rest', () => stage.weir(['dead', 'list', '--json']).split('\n').length === 18);
    },
    'a customer floods': async ({ stage, begin }) => {
        stage.weir(['rate', 'set', 'mail', '1/1h,by=args.to']);
        for (const [to, n] of [['acme', 40], ['bolt', 2]]) stage.weir(['enqueue', '--from', '-', 'mail'], lines(n, JSON.stringify({ to })));
        stage.worker('-c', '1', '--exec', 'mail=true');
        await until('parked jobs', () => JSON.parse(stage.weir(['rate', 'keys', 'mail', '--json'])).parked === 40);
        const { page, click } = await begin();
        await click(page.getByRole('link', { name: /for each args\.to/ }));
        await click(row(page, 'acme').getByRole('button', { name: 'Pause' }));
        await until('its pause', async () => /paused by hand/.test(await row(page, 'acme').innerText()));
    },
    'a rate is changed, and seen': async ({ stage, begin }) => {
        stage.weir(['rate', 'set', 'mail', '1/1h']);
        stage.weir(['enqueue', '--from', '-', 'mail'], lines(30));
        stage.worker('--exec', 'mail=true');
        const { page, click } = await begin();
        await click(page.getByRole('link', { name: /mail#0/ }));
        await page.locator('input[name=rules]').fill('1000/s');
        await click(page.getByRole('button', { name: 'Apply' }));
        await shows(page, 'set mail 1000/1s');
        await until('its jobs to run', () => JSON.parse(stage.weir(['type', 'show', 'mail', '--json'])).done === 30);
    },
    'a machine is drained': async ({ stage, begin }) => {
        for (let i = 0; i < 2; i++) stage.worker('--exec', 'mail=true');
        await until('two workers', () => stage.weir(['worker', 'list', '--json']).split('\n').length === 2);
        const { page, click } = await begin();
        stage.weir(['worker', 'quiet', os.hostname(), '--wait', '--yes']);
        await click(page.getByRole('link', { name: 'Workers', exact: true }));
        await until('both to be quiet', async () => await page.getByRole('button', { name: 'Resume' }).count() === 2);
    },
    'another Redis': async ({ stage, begin }) => {
        const other = new Stage();

        try {
            await other.open();
            stage.weir(['rate', 'set', 'mail', '10/s']);
            stage.weir(['schedule', 'add', 'nightly', '0 3 * * *', 'report']);
            fs.writeFileSync(path.join(other.folder, 'all.toml'), stage.weir(['export']) + '\n');
            other.weir(['apply', 'all.toml']);
            const { page } = await begin(other, '/schedules');
            await shows(page, 'nightly');
            assert.equal(other.weir(['export']), stage.weir(['export']));
        } finally {
            await other.close();
        }
    },
    'how full it gets, and when': async ({ stage, begin }) => {
        const mib = 2 ** 20, now = Date.now() * 1000;

        await stage.redis('CONFIG', 'SET', 'maxmemory', String(95 * mib));
        stage.weir(['enqueue', 'mail']);
        await stage.redis('HSET', 'weir:{0}:about', 'memory', [60, 30, 5].map((m) => `${now - m * 60e6}:${(61 - m) * mib / 40}`).join(' '));
        const { page, click } = await begin();
        await click(page.getByRole('link', { name: 'Redis', exact: true }));
        await shows(page, /of 95 MiB used.* full /);
    },
    'the job of order 4711, done yesterday': async ({ stage, begin }) => {
        stage.weir(['enqueue', 'order', '{"order":4711}', '--id', 'first']);
        stage.worker('--exec', 'order=true', '--keep', '*=2d');
        await until('it is kept', () => stage.weir(['job', 'show', 'first', '--json']).includes('finished'));
        const { page, click, search } = await begin();
        await search('args.order:4711 state:finished');
        await click(page.getByRole('link', { name: 'first' }));
        await shows(page, /finished: done/);
    },
    'what happened to X': async ({ stage, begin }) => {
        await makeDead(stage, 1);
        const { page, search, click } = await begin();
        await search('d1');
        await click(page.getByRole('link', { name: 'd1', exact: true }));
        await shows(page, /dead since[^]*failed once: exit 1/);
    },
};
for (const [name, act] of Object.entries(TASKS))
    cases['task: ' + name] = async ({ stage, open }) => {
        const base = await stage.serve('serve', '--allow-actions'), page = await open();
        let clicks = 0;
        const click = async (locator) => { clicks++; await locator.click(); };
        const search = async (words) => {
            await page.keyboard.press('/');
            await page.keyboard.type(words + '\n');
            await shows(page, 'Jobs');
        };
        const begin = async (other, address = '/') => {
            await page.goto((other ? await other.serve('serve') : base) + address);
            return { page, click, search };
        };

        await act({ stage, begin });
        assert.ok(clicks <= 2, `${clicks} clicks`);
    };

module.exports = cases;

// The pictures of doc/screenshots: each page light, dark and narrow, of a namespace that has been at work for a minute.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { shrink } = require('./png.js');
const { Stage, until, sleep } = require('./stage.js');

const AT_WORK_MS = 75000;
const SINCE_MS = 8000; // what happened last is within the minute that a limit shows

const PICTURES = {
    overview: '/',
    limit: '/limits/mailgun?rules=30/s,burst=20',
    limits: '/limits',
    keys: '/keys/crm',
    type: '/types/invoice_mail',
    jobs: '/jobs?q=type:invoice_mail+state:parked',
    job: (stage) => '/jobs/' + JSON.parse(stage.weir(['dead', 'list', '--json']).split('\n')[0]).id,
    batch: '/batches/november',
    schedules: '/schedules',
    workers: '/workers',
    dead: '/dead',
    redis: '/redis',
};

const SCREENS = {
    light: { viewport: { width: 1080, height: 760 }, colorScheme: 'light' },
    dark: { viewport: { width: 1080, height: 760 }, colorScheme: 'dark' },
    narrow: { viewport: { width: 360, height: 760 }, colorScheme: 'light' },
};

const fill = (stage) => {
    const handler = path.join(stage.folder, 'bounce.sh');
    const list = (n, job) => Array.from({ length: n }, (_, i) => JSON.stringify(job(i))).join('\n');

    fs.writeFileSync(handler, '#!/bin/sh\necho "smtp: 550 5.1.1 mailbox <unknown@example.com> does not exist" >&2\nexit 65\n', { mode: 0o755 });
    stage.weir(['rate', 'set', 'mailgun', '20/s,burst=20']);
    stage.weir(['rate', 'set', 'crm', '2/s,by=args.customer']);
    stage.weir(['rate', 'set', 'render', 'concurrency=3']);
    stage.weir(['rate', 'use', 'invoice_mail', 'mailgun']);
    stage.weir(['rate', 'use', 'weekly_summary', 'mailgun']);
    stage.weir(['rate', 'use', 'sync_contact', 'crm']);
    stage.weir(['rate', 'use', 'render_report', 'render']);
    stage.weir(['rate', 'pause', 'crm/c3', '--for', '2h']);
    stage.weir(['enqueue', '--from', '-', 'invoice_mail', '--batch', 'november'], list(3600, (i) => ({ invoice: 70000 + i, to: `customer${i}@example.com` })));
    stage.weir(['enqueue', '--from', '-', 'weekly_summary'], list(1400, (i) => ({ business_id: i })));
    stage.weir(['enqueue', '--from', '-', 'sync_contact'], list(9000, (i) => ({ customer: 'c' + Math.floor(17 * ((i * 7919) % 1000 / 1000) ** 2), contact: i })));
    stage.weir(['enqueue', '--from', '-', 'render_report'], list(400, (i) => ({ report: i })));
    stage.weir(['enqueue', '--from', '-', 'bounce_check'], list(14, (i) => ({ address: i })));
    stage.weir(['enqueue', '--from', '-', 'import_file'], list(6, (i) => ({ file: `upload-${i}.csv` })));
    for (let i = 1; i <= 5; i++) stage.weir(['enqueue', 'reminder', `{"n":${i}}`, '--in', `${i}h`]);
    stage.weir(['schedule', 'add', 'weekly', '0 9 * * MON', 'weekly_summary', '{}', '--tz', 'Europe/Berlin']);
    stage.weir(['schedule', 'add', 'nightly-report', '30 2 * * *', 'render_report', '{"all":true}']);
    stage.weir(['schedule', 'add', 'hourly-sync', '0 * * * *', 'sync_contact', '{"customer":"all"}']);
};

const startWorkers = (stage) => [0, 1].map(() =>
    stage.worker('-c', '8', '--exec', 'invoice_mail=sleep 0.08', '--exec', 'weekly_summary=sleep 0.2', '--exec', 'sync_contact=sleep 0.03',
        '--exec', 'render_report=sleep 0.9', '--exec', 'bounce_check=' + path.join(stage.folder, 'bounce.sh'), '--exec', 'reminder=true'));

// As in a deployment: for some seconds nobody takes the slots.
const restart = async (stage, workers) => {
    for (const worker of workers) worker.kill('SIGTERM');
    await until('the end of the workers', () => workers.every((worker) => worker.exitCode !== null));
    await sleep(4000);
    startWorkers(stage);
};

exports.takePictures = async (browser, folder) => {
    const stage = new Stage();

    fs.mkdirSync(folder, { recursive: true });
    try {
        await stage.open();
        fill(stage);
        const workers = startWorkers(stage);
        const base = await stage.serve('serve', '--allow-actions');
        await sleep(AT_WORK_MS);
        await restart(stage, workers);
        await sleep(SINCE_MS);
        stage.weir(['rate', 'set', 'mailgun', '24/s,burst=20']);
        await sleep(SINCE_MS);
        for (const [screen, options] of Object.entries(SCREENS)) {
            const page = await (await browser.newContext(options)).newPage();

            for (const [name, address] of Object.entries(PICTURES)) {
                await page.goto(base + (typeof address === 'function' ? address(stage) : address));
                await page.locator('#live.on').waitFor();
                fs.writeFileSync(path.join(folder, `${name}-${screen}.png`), shrink(await page.screenshot()));
            }
            await page.context().close();
        }
        await until('pictures', () => fs.readdirSync(folder).length >= Object.keys(PICTURES).length * 3);
    } finally {
        await stage.close();
    }
};

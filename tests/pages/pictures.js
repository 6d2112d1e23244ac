// The pictures of doc/screenshots: each page light, dark and narrow, of a namespace that has been at work for a minute.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { shrink } = require('./png.js');
const { Stage, until, sleep } = require('./stage.js');

const AT_WORK_MS = 75000;

const PICTURES = {
    overview: '/',
    limit: '/limits/mailgun?rules=30/s,burst=20+50000/1d',
    limits: '/limits',
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
    stage.weir(['rate', 'set', 'mailgun', '20/s,burst=20', '50000/1d']);
    stage.weir(['rate', 'set', 'crm', '2/s,by=args.customer']);
    stage.weir(['rate', 'set', 'render', 'concurrency=3']);
    stage.weir(['rate', 'use', 'invoice_mail', 'mailgun']);
    stage.weir(['rate', 'use', 'weekly_summary', 'mailgun']);
    stage.weir(['rate', 'use', 'sync_contact', 'crm']);
    stage.weir(['rate', 'use', 'render_report', 'render']);
    stage.weir(['enqueue', '--from', '-', 'invoice_mail', '--batch', 'november'], list(2600, (i) => ({ invoice: 70000 + i, to: `customer${i}@example.com` })));
    stage.weir(['enqueue', '--from', '-', 'weekly_summary'], list(900, (i) => ({ business_id: i })));
    stage.weir(['enqueue', '--from', '-', 'sync_contact'], list(1500, (i) => ({ customer: 'c' + (i * i) % 17, contact: i })));
    stage.weir(['enqueue', '--from', '-', 'render_report'], list(240, (i) => ({ report: i })));
    stage.weir(['enqueue', '--from', '-', 'bounce_check'], list(14, (i) => ({ address: i })));
    stage.weir(['enqueue', '--from', '-', 'import_file'], list(6, (i) => ({ file: `upload-${i}.csv` })));
    for (let i = 1; i <= 5; i++) stage.weir(['enqueue', 'reminder', `{"n":${i}}`, '--in', `${i}h`]);
    stage.weir(['schedule', 'add', 'weekly', '0 9 * * MON', 'weekly_summary', '{}', '--tz', 'Europe/Berlin']);
    stage.weir(['schedule', 'add', 'nightly-report', '30 2 * * *', 'render_report', '{"all":true}']);
    stage.weir(['schedule', 'add', 'hourly-sync', '0 * * * *', 'sync_contact', '{"customer":"all"}']);
    for (let i = 0; i < 2; i++)
        stage.worker('-c', '8', '--exec', 'invoice_mail=sleep 0.08', '--exec', 'weekly_summary=sleep 0.2', '--exec', 'sync_contact=sleep 0.03',
            '--exec', 'render_report=sleep 0.9', '--exec', 'bounce_check=' + handler, '--exec', 'reminder=true');
};

exports.takePictures = async (browser, folder) => {
    const stage = new Stage();

    fs.mkdirSync(folder, { recursive: true });
    try {
        await stage.open();
        fill(stage);
        const base = await stage.serve('serve', '--allow-actions');
        await sleep(AT_WORK_MS / 2);
        stage.weir(['rate', 'set', 'mailgun', '24/s,burst=20', '50000/1d']);
        await sleep(AT_WORK_MS / 2);
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

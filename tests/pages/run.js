// The pages of weir serve in a real browser: Debian's Chromium, driven by playwright-core. Clicks through each page and action.
//
//   make test-pages                          installs what it needs, and runs all
//   PAGES='*limit*' make test-pages          some of them
//   SCREENSHOTS=doc/screenshots make test-pages   takes the pictures of the documents too
//
// Without Node.js, Chromium or playwright-core it is skipped with one line, unless WEIR_PAGES=required.
'use strict';
const fs = require('node:fs');
const { Stage } = require('./stage.js');
const cases = require('./cases.js');
const { takePictures } = require('./pictures.js');

const skip = (why) => {
    console.log(`test-pages: skipped: ${why}`);
    process.exit(process.env.WEIR_PAGES === 'required' ? 1 : 0);
};

const findChromium = () => [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
    .find((file) => file && fs.existsSync(file));

const matches = (name) => {
    const wanted = process.env.PAGES || '*';
    return new RegExp('^' + wanted.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*') + '$').test(name);
};

// A page of its own, on which nothing may go wrong unseen.
const openPage = async (browser, options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
    const page = await context.newPage();
    page.wrong = [];
    page.setDefaultTimeout(15000);
    page.on('pageerror', (error) => page.wrong.push('error in the script: ' + error.message));
    page.on('console', (message) => {
        if (message.type() === 'error') page.wrong.push('console: ' + message.text());
    });
    page.on('dialog', (dialog) => {
        page.wrong.push('a dialog: ' + dialog.message());
        dialog.dismiss();
    });
    page.on('request', (request) => {
        if (!/^(http:\/\/127\.0\.0\.1:|data:)/.test(request.url())) page.wrong.push('asks elsewhere: ' + request.url());
    });
    return page;
};

const runCase = async (name, browser) => {
    const stage = new Stage();
    const pages = [];
    const open = async (options) => {
        const page = await openPage(browser, options);
        pages.push(page);
        return page;
    };
    try {
        await stage.open();
        await cases[name]({ stage, open });
        for (const page of pages) {
            const wrong = page.wrong.filter((text) => !(page.expected || []).some((expected) => text.includes(expected)));
            if (wrong.length) throw new Error(wrong.join('\n'));
        }
        return null;
    } catch (error) {
        for (const page of pages) await page.screenshot({ path: `${process.env.BUILD || 'build'}/pages/${name.replace(/\W+/g, '-')}.png` }).catch(() => {});
        return error;
    } finally {
        for (const page of pages) await page.context().close();
        await stage.close();
    }
};

const main = async () => {
    let chromium;
    try {
        ({ chromium } = require('playwright-core'));
    } catch {
        skip('playwright-core is missing; make test-pages installs it');
    }
    const executablePath = findChromium() || skip('Chromium is missing; apt-get install chromium');
    const browser = await chromium.launch({ executablePath, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
    let passed = 0, failed = 0;

    for (const name of Object.keys(cases).filter(matches)) {
        const error = await runCase(name, browser);
        console.log(`${error ? 'FAILED' : 'ok    '} ${name}`);
        if (error) console.log('    ' + error.stack.split('\n').slice(0, 12).join('\n    '));
        if (error) failed++;
        else passed++;
    }
    if (process.env.SCREENSHOTS) await takePictures(browser, process.env.SCREENSHOTS);
    await browser.close();
    console.log(`pages: ${passed} passed, ${failed} failed`);
    process.exit(failed ? 1 : 0);
};

main();

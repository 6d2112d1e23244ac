/* The pages are whole without this. It keeps the open page up to date, says how long ago things were, and shows what the
 * slider of a limit would do. */
'use strict';
(() => {
    const main = () => document.getElementById('main');
    const live = document.getElementById('live');

    /* ---- Times: data-at is milliseconds since 1970, data-now of <main> is Redis's clock when the page was written. What is
     * due (data-due) does not pass: the next page says what became of it */
    let ahead = -Infinity;
    const setClock = () => { // a page may be up to a minute old: the newest knows best
        const seen = Number(main().dataset.now) - Date.now();
        if (seen > ahead || seen < ahead - 90000) ahead = seen;
    };
    const units = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']];
    const span = (seconds, oneFrom) => {
        let i = units.findIndex(([size]) => size <= seconds);
        if (i < 0) i = 3;
        const first = Math.floor(seconds / units[i][0]);
        const second = i < 3 ? Math.floor(seconds % units[i][0] / units[i + 1][0]) : 0;
        return first + units[i][1] + (second > 0 && first < oneFrom ? ' ' + second + units[i + 1][1] : '');
    };
    const relative = (at) => {
        const passed = (Date.now() + ahead - at) / 1000;
        if (passed < 0) return 'in ' + span(Math.ceil(-passed), Infinity);
        return passed < 1 ? 'now' : span(Math.floor(passed), 3) + ' ago';
    };
    const showTimes = (within) => {
        for (const time of within.querySelectorAll('time[data-at]')) {
            const at = Number(time.dataset.at);
            const text = 'due' in time.dataset && at <= Date.now() + ahead ? 'now' : relative(at);
            if (time.textContent !== text) time.textContent = text;
            if (time.title && !time.title.includes(' · ')) time.title = new Date(at).toLocaleString() + ' · ' + time.title;
        }
    };

    /* ---- A new <main> becomes the old one, node by node: focus, open details and what is being typed stay */
    const keyOf = (node) => node.nodeType === 1 ? node.id || node.dataset.key || '' : '';
    const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
    const isTyped = (node) => (node.nodeName === 'INPUT' && node.type !== 'hidden' && (node === document.activeElement || node.value !== node.defaultValue)) ||
        (node.nodeName === 'SELECT' && node === document.activeElement);
    const takeAttributes = (old, fresh) => {
        for (const { name } of [...old.attributes]) {
            if (!fresh.hasAttribute(name) && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name);
        }
        for (const { name, value } of fresh.attributes) {
            if (old.getAttribute(name) !== value) old.setAttribute(name, value);
        }
    };
    const become = (old, fresh) => {
        if (old.nodeType !== 1) {
            if (old.data !== fresh.data) old.data = fresh.data;
            return;
        }
        if (isTyped(old) || old.hasAttribute('data-keep')) return;
        takeAttributes(old, fresh);
        takeChildren(old, fresh);
    };
    const takeChildren = (old, fresh) => {
        let at = old.firstChild;
        for (const child of [...fresh.childNodes]) {
            let same = at;
            while (same && !isAlike(same, child)) same = keyOf(child) ? same.nextSibling : null;
            if (same) {
                if (same !== at) old.insertBefore(same, at);
                become(same, child);
                at = same.nextSibling;
            } else {
                old.insertBefore(child, at);
            }
        }
        while (at) {
            const next = at.nextSibling;
            at.remove();
            at = next;
        }
    };
    const mainOf = (text) => new DOMParser().parseFromString(text, 'text/html').getElementById('main');
    const show = (fresh) => {
        become(main(), fresh);
        setClock();
        showTimes(main());
    };

    /* ---- Live, while somebody looks. What is shown and is not true any more says how old it is */
    const EVERY_MS = 2000, SILENCE_MS = 15000;
    let asking = null, timer = 0, seen = Date.now();
    const say = (text, on) => {
        if (!live) return;
        live.textContent = text;
        live.classList.toggle('on', on);
    };
    const setAway = (why) => {
        const banner = document.getElementById('away'), words = banner.querySelector('b'), time = banner.querySelector('time');
        banner.hidden = why === '' || 'away' in main().dataset;
        if (words.textContent !== why) words.textContent = why;
        time.dataset.at = seen + ahead;
        showTimes(banner);
    };
    const lose = (why) => {
        say('not live', false);
        setAway(why);
    };
    /* Where nothing was found yet, the search goes on until this page is left or hidden, or another one is typed. */
    const lookOn = () => {
        const link = document.querySelector('[data-look-on] a');
        if (link && !document.hidden && ![...document.querySelectorAll('main input')].some(isTyped)) location.replace(link.href);
        return link;
    };
    const isFollowed = () => !document.hidden && main().dataset.now && !('gone' in main().dataset) && location.pathname !== '/ask';
    const rest = (why) => {
        clearTimeout(timer);
        if (asking) asking.abort();
        asking = null;
        say(why, false);
    };
    /* Reads the page once more. A status of 0: weir serve does not answer. */
    const fetchPage = async (signal) => {
        try {
            const answer = await fetch(location.href, { signal, cache: 'no-store' });
            return { status: answer.status, fresh: mainOf(await answer.text()) };
        } catch {
            return { status: 0 };
        }
    };
    const follow = async () => {
        const mine = asking = new AbortController(), asked = Date.now();
        const patience = setTimeout(() => mine.abort(), SILENCE_MS);
        const { status, fresh } = await fetchPage(mine.signal);
        clearTimeout(patience);
        if (asking !== mine) return;
        asking = null;
        if (status === 401) return lose('You are logged out.');
        if (!fresh) lose('weir serve does not answer.');
        else if (status === 503) lose('away' in fresh.dataset ? 'Redis does not answer.' : 'weir serve has too much to do.');
        else {
            seen = asked;
            setAway('');
            show(fresh);
            say('live', true);
        }
        followSoon(EVERY_MS);
    };
    const followSoon = (ms) => {
        clearTimeout(timer);
        if (lookOn() || !isFollowed()) rest('');
        else timer = setTimeout(follow, ms);
    };

    /* ---- The slider of a limit. Its stops were forecast with the page, each by the rules as they would be:
     * [{"rules": "50/s", "ends": [ms since 1970, 0: unknown, ...]}, ...], an end for each type of the table */
    const moveSlider = (slider) => {
        const stop = JSON.parse(slider.dataset.stops)[Number(slider.querySelector('input[type=range]').value)];
        const form = document.getElementById('change');
        form.setAttribute('data-keep', '');
        form.querySelector('input[name=rules]').value = stop.rules;
        slider.querySelector('output').textContent = stop.rules;
        stop.ends.forEach((end, i) => {
            const cell = document.getElementById('end-' + i);
            if (!cell) return;
            const time = document.createElement('time');
            time.dataset.at = end;
            time.textContent = end > 0 ? relative(end) : 'not known';
            if (!(end > 0)) delete time.dataset.at;
            cell.replaceChildren(time);
        });
    };
    document.addEventListener('input', (event) => {
        const slider = event.target.closest('[data-stops]');
        if (slider) moveSlider(slider);
    });

    /* ---- Keys: "/" finds */
    document.addEventListener('keydown', (event) => {
        const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.nodeName);
        if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
            document.getElementById('find').focus();
            event.preventDefault();
        }
    });

    document.addEventListener('visibilitychange', () => document.hidden ? rest('paused') : followSoon(0));
    setClock();
    showTimes(document);
    const current = document.querySelector('nav [aria-current]');
    if (current) current.parentNode.parentNode.parentNode.scrollLeft = current.offsetLeft - 60;
    document.documentElement.classList.add('script');
    setInterval(() => {
        if (!document.hidden) showTimes(document);
    }, 1000);
    if (isFollowed() && !('away' in main().dataset)) say('live', true);
    followSoon(EVERY_MS);
})();

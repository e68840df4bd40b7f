// Runs in each page before its own scripts, and measures in it. `wanted` is a selector, or undefined.
globalThis.measure = ((wanted) => {
  /** Resolves with the time at which the next frame is on its way to the screen. */
  const painted = () =>
    new Promise((resolve) => {
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now());
        port2.postMessage(undefined);
      });
    });

  const seen = new Promise((resolve) => {
    if (wanted === undefined) return;
    const look = () => {
      if (!document.querySelector(wanted)) return;
      observer.disconnect();
      resolve(painted());
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { childList: true, subtree: true });
  });

  /** When the last byte of an answer arrived, and how long it took. */
  const arrivalOf = (path) => {
    const entries = performance.getEntriesByType(path === undefined ? 'navigation' : 'resource');
    const { startTime, responseEnd } = entries.find(({ name }) => name.includes(path ?? '')) ?? {};
    return { arrived: responseEnd, answerMs: responseEnd - startTime };
  };

  return {
    /** Milliseconds from the last byte of the answer at `path` to the first frame with the wanted element. */
    async paint(path) {
      const at = await seen;
      const { arrived, answerMs } = arrivalOf(path);
      return { paintMs: at - arrived, answerMs };
    },

    /** The floor of {@link paint}: only parses the same answer, and writes one line. */
    async paintFloor(path, token) {
      const response = await fetch(path, { headers: { authorization: `Bearer ${token}` } });
      const text = await response.text();
      document.body.textContent = `${Object.keys(JSON.parse(text)).length} members`;
      const at = await painted();
      return { paintMs: at - arrivalOf(path).arrived, characters: text.length };
    },

    /** Scrolls an element up and down, a step a frame. Resolves with the milliseconds between frames. */
    async scroll(selector, forMs) {
      const element = document.querySelector(selector);
      const end = element.scrollHeight - element.clientHeight;
      const gaps = [];
      let at = 0;
      let step = 120;
      let last;
      const began = performance.now();
      await new Promise((resolve) => {
        const next = (now) => {
          if (last !== undefined) gaps.push(now - last);
          last = now;
          if (at + step < 0 || at + step > end) step = -step;
          at += step;
          // It is not read, because reading it would compute the layout once more.
          element.scrollTop = at;
          if (now - began < forMs) requestAnimationFrame(next);
          else resolve();
        };
        requestAnimationFrame(next);
      });
      return gaps;
    },

    /** The floor of {@link scroll}: scrolls a list of this many lines that no code changes. */
    async scrollFloor(lines, forMs) {
      const list = document.createElement('pre');
      list.id = 'floor';
      Object.assign(list.style, { height: '600px', overflow: 'auto', lineHeight: '30px' });
      list.textContent = Array.from({ length: lines }, (_, index) => `line ${index}`).join('\n');
      document.body.replaceChildren(list);
      return this.scroll('#floor', forMs);
    },
  };
})(wanted);

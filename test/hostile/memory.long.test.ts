import { expect, test } from 'vitest';
import { hostileUpstream } from './hostile-upstream.ts';
import { type HostileTrial, relayProcess, ways } from './relay-process.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 240_000;

/** MiB of the process's heap, as `--max-old-space-size` has it. */
const heapMiB = 256;
/**
 * The most resident MiB of the process: its heap, the bytes of requests and answers (a quarter of the heap),
 * and Node itself.
 */
const residentMiB = 384;

/** What one hostile trial does, all at once. */
const attacks: Record<string, (trial: HostileTrial) => void> = {
  'a hundred streams whose event never ends': (trial) => {
    for (let at = 0; at < 100; at += 1) ask(trial, 'endless-event').resume();
  },
  'forty answers of nothing but values': (trial) => {
    for (let at = 0; at < 40; at += 1) ask(trial, 'many-values').resume();
  },
  'a hundred answers in crumbs that nobody reads': (trial) => {
    for (let at = 0; at < 100; at += 1) ask(trial, 'crumbs');
  },
  'forty requests of nothing but values': (trial) => {
    const values = `{"model":"hostile","messages":[${'[],'.repeat(4 * 2 ** 20)}[]]}`;
    for (let at = 0; at < 40; at += 1) send(trial, values);
  },
  'forty large requests beyond ASCII': (trial) => {
    const text = `{"model":"hostile","messages":[{"role":"user","content":"${'\u{1f600}'.repeat(3.5 * 2 ** 20)}"}]}`;
    for (let at = 0; at < 40; at += 1) send(trial, text);
  },
};

function ask(trial: HostileTrial, content: string) {
  const body = { model: 'hostile', stream: true, messages: [{ role: 'user', content }] };
  const request = trial.send(JSON.stringify(body));
  return {
    resume: () => request.on('response', (response) => response.on('error', () => undefined).resume()),
  };
}

function send(trial: HostileTrial, body: string): void {
  trial.send(body).on('response', (response) => response.on('error', () => undefined).resume());
}

const all = Object.entries(attacks).flatMap(([name, attack]) => ways.map((way) => ({ name, attack, way })));

test.for(all)(
  `with a heap of ${heapMiB} MiB $name, $way, neither end the process nor hinder the trial beside`,
  { timeout },
  async ({ name, attack, way }) => {
    await using upstream = await hostileUpstream();
    await using agent = await relayProcess({ heapMiB, upstream: upstream.url });
    using hostile = await agent.trial(way);
    using honest = await agent.trial();
    attack(hostile);
    let highest = 0;
    let worstMs = 0;
    const until = performance.now() + 15_000;
    while (performance.now() < until) {
      const asked = performance.now();
      const answer = await honest.ask('hostile', 'brief');
      expect([answer.status, answer.body.choices?.[0].message.content]).toEqual([200, 'brief']);
      worstMs = Math.max(worstMs, performance.now() - asked);
      highest = Math.max(highest, (await agent.resident()) / 2 ** 20);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    console.log(
      `${name}: at most ${Math.round(highest)} MiB resident; the honest trial waited ${Math.round(worstMs)} ms at most`,
    );
    expect(agent.said()).toBe('');
    expect(highest).toBeLessThan(residentMiB);
  },
);

import { cpSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Delivery, deliverLeftovers } from '../../src/agent/delivery.ts';
import { reconcile, reconcileEarlier } from '../../src/agent/reconcile.ts';
import { ServiceSender } from '../../src/agent/sender.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { permissions, type StartResponse } from '../../src/contract/definition.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { KnownRun } from '../../src/ledger/outbox.ts';
import { openService, type Service } from '../../src/service/service.ts';
import { randomFrom } from '../gateway/limits/simulation.ts';
import { startRequest } from '../service/test-service.ts';

type Recorded = { ordinal: number; status: string; sandboxId?: string };

const service = 'there';
const trialsOfARun = 10;

/**
 * The real service over HTTP and two data folders that work on its runs, without sandboxes: what a trial
 * found is made up. Requests and answers get lost or late; service and ledgers are restored from backups at
 * random moments; leases end.
 */
export class BothSides implements AsyncDisposable {
  readonly #folder: string;
  readonly #random: () => number;
  /** Time passes faster than on a clock, so that leases end. */
  #offset = 0;
  readonly #clock: Clock;
  #service: Service;
  #secret = '';
  readonly #server;
  readonly #agents: Agent[] = [];
  /** Part of the requests that something happens to. */
  trouble = 0;

  private constructor(folder: string, random: () => number) {
    this.#folder = folder;
    this.#random = random;
    this.#clock = { ...systemClock, now: () => Date.now() + this.#offset };
    this.#service = this.#openService();
    this.#secret = this.#service.createKey({ organization: 'Acme', permissions }).secret;
    this.#server = createServer(async (request, response) => {
      const body = await text(request);
      const fate = this.#random();
      if (fate < this.trouble / 3) return request.socket.destroy();
      const answer = await this.#fetch(request.url ?? '', body);
      const said = await answer.text();
      if (fate < (2 * this.trouble) / 3) return request.socket.destroy();
      // Late: the caller has given up, and others are served meanwhile.
      if (fate < this.trouble) return response.writeHead(503).end();
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(said);
    });
  }

  static async open(folder: string, { seed, runs }: { seed: number; runs: number }): Promise<BothSides> {
    const sides = new BothSides(folder, randomFrom(seed));
    await new Promise<void>((resolve) => sides.#server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(sides.#server.address() as AddressInfo).port}`;
    const request = startRequest();
    const [variant] = request.variants;
    const [example] = request.cases;
    const cases = Array.from({ length: runs }, (_, n) => ({
      ...example,
      id: `case-${n}`,
      name: `case-${n}`,
    }));
    const body = JSON.stringify({
      ...request,
      cases,
      variants: [variant],
      trials: trialsOfARun,
      local: true,
    });
    const started = (await (await sides.#fetch('/v1/evals.start', body)).json()) as StartResponse;
    const recorded = async (caseId: string) => {
      const answer = await sides.#fetch('/v1/evals.runs.list', JSON.stringify({ caseId }));
      return ((await answer.json()) as { runs: { trials: Recorded[] }[] }).runs[0]?.trials ?? [];
    };
    for (const name of ['a', 'b']) {
      const agent = new Agent(join(folder, name), { clock: sides.#clock, url, key: sides.#secret }, recorded);
      agent.plan(started);
      sides.#agents.push(agent);
    }
    sides.#keepService();
    return sides;
  }

  /** Something happens, on one side or the other. */
  async step(): Promise<void> {
    const agent = this.#agents[this.#random() < 0.5 ? 0 : 1] as Agent;
    const what = this.#random();
    this.#offset += Math.round(this.#random() * 40_000);
    if (what < 0.7) await agent.work(this.#random);
    else if (what < 0.85) await agent.deliver();
    else if (what < 0.88) agent.backUp();
    else if (what < 0.9) agent.restore();
    else if (what < 0.93) this.#keepService();
    else if (what < 0.95) await this.#restoreService();
  }

  /** Without further trouble, until each agent has done all its work and every lease has ended. */
  async heal(): Promise<void> {
    this.trouble = 0;
    for (let round = 0; round < 6; round++) {
      this.#offset += 3_600_000;
      for (const agent of this.#agents) {
        for (let n = 0; n < 40 && (await agent.work(this.#random)); n++);
        await agent.deliver();
      }
    }
  }

  /** What is wrong between ledgers and service; empty if they agree. */
  async disagreements(): Promise<string[]> {
    const problems: string[] = [];
    for (const agent of this.#agents) problems.push(...(await agent.disagreements()));
    return problems;
  }

  /** How often a command said that all is done, and what was wrong at that moment. */
  get said(): { times: number; wrong: string[] } {
    return {
      times: this.#agents.reduce((sum, { said }) => sum + said, 0),
      wrong: this.#agents.flatMap(({ broken }) => broken),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.#agents) await agent[Symbol.asyncDispose]();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#service.close();
  }

  get #dataFolder(): string {
    return join(this.#folder, 'service');
  }

  #openService(): Service {
    return openService({ dataFolder: this.#dataFolder, clock: this.#clock, integrations: [] });
  }

  #keepService(): void {
    rmSync(`${this.#dataFolder}.kept`, { recursive: true, force: true });
    cpSync(this.#dataFolder, `${this.#dataFolder}.kept`, { recursive: true });
  }

  async #restoreService(): Promise<void> {
    const kept = `${this.#dataFolder}.kept`;
    await this.#service.close();
    rmSync(this.#dataFolder, { recursive: true });
    cpSync(kept, this.#dataFolder, { recursive: true });
    this.#service = this.#openService();
  }

  #fetch(path: string, body: string): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#secret}`, 'content-type': 'application/json' };
    const request = path.startsWith('/v1/') ? { method: 'POST', headers, body } : { headers };
    return Promise.resolve(this.#service.fetch(new Request(`http://service.test${path}`, request)));
  }
}

/** One data folder, with what `resume` and `outbox send` do in it. */
class Agent implements AsyncDisposable {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #client: Client;
  #ledger: Ledger;
  #sender: ServiceSender;
  #runs: KnownRun[] = [];
  #batch = 0;
  #made = 0;
  /** The service's records, past all trouble. */
  readonly #recorded: (caseId: string) => Promise<Recorded[]>;
  /** What was wrong when a command said that all is done. */
  readonly broken: string[] = [];
  said = 0;

  constructor(
    folder: string,
    { clock, url, key }: { clock: Clock; url: string; key: string },
    recorded: (caseId: string) => Promise<Recorded[]>,
  ) {
    this.#recorded = recorded;
    this.#folder = folder;
    this.#clock = clock;
    this.#client = createClient({
      url,
      apiKey: key,
      clock: systemClock,
      retry: { attempts: 2, firstWait: 1, longestWait: 1 },
    });
    this.#ledger = new Ledger(folder, clock);
    this.#sender = this.#openSender();
  }

  plan({ id, runs }: StartResponse): void {
    const batch = this.#ledger.batches.add({
      service,
      id,
      suite: 'S',
      file: undefined,
      runs: runs.map((run, taskIndex) => ({
        ...run,
        taskIndex,
        caseName: run.caseId,
        variant: 'v',
      })),
    });
    this.#batch = batch.key;
    const stored = this.#ledger.batches.runs(batch.key);
    const ordinals = Array.from({ length: trialsOfARun }, (_, ordinal) => ordinal);
    this.#ledger.queue.add(stored.map(({ key }) => ({ key, setup: undefined, ordinals })));
    this.#runs = stored.map(({ key, id, caseId }) => ({ key, id, caseId }));
    this.backUp();
  }

  /** Ends one of the open trials. Resolves with whether there was one. */
  async work(random: () => number): Promise<boolean> {
    const open = this.#open();
    const picked = open[Math.floor(random() * open.length)];
    if (!picked) return false;
    const { run, trial, ordinal } = picked;
    let lease: number | undefined;
    if (random() < 0.8) {
      const request = { id: run.id, ordinal, agent: this.#ledger.agentId, seconds: 90 };
      const claimed = await this.#client.call('evals.claimTrial', request).catch((error) => error as Error);
      if (claimed instanceof Error && claimed.name === 'Conflict') return true;
      lease = claimed instanceof Error ? undefined : claimed.attempt;
    }
    this.#made += 1;
    const report = {
      caseName: run.caseId,
      ordinal,
      taskIndex: this.#runs.indexOf(run),
      events: [],
      sandboxId: `${this.#folder} ${this.#made} ${random()}`,
      outcome: { passed: true },
    };
    const attempt = this.#ledger.trials.beginAttempt(trial);
    await this.#ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report, lease });
    if (random() < 0.5) {
      // Reports are sent, and the process ends before it looks.
      const { promise, resolve } = Promise.withResolvers<void>();
      const parts = { ...this.#reporting, batch: this.#batch, note: () => undefined };
      await using _delivery = new Delivery({ ...parts, observe: () => resolve() });
      await promise;
    }
    return true;
  }

  /** As `resume` does, without running anything. */
  async deliver(): Promise<void> {
    const { signal } = new AbortController();
    const note = () => undefined;
    const parts = { client: this.#client, ledger: this.#ledger, note };
    try {
      await reconcile(this.#runs, parts, signal, { open: true });
      await reconcileEarlier(service, parts, signal);
      await deliverLeftovers(this.#reporting, signal, note);
      if (this.#ledger.outbox.pending().length > 0 || this.#open().length > 0) return;
    } catch {
      return;
    }
    this.said += 1;
    this.broken.push(...(await this.disagreements()));
  }

  backUp(): void {
    rmSync(`${this.#folder}.kept`, { recursive: true, force: true });
    cpSync(this.#folder, `${this.#folder}.kept`, { recursive: true });
  }

  restore(): void {
    this.#ledger[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true });
    cpSync(`${this.#folder}.kept`, this.#folder, { recursive: true });
    this.#ledger = new Ledger(this.#folder, this.#clock);
    this.#sender = this.#openSender();
  }

  async disagreements(): Promise<string[]> {
    const problems: string[] = [];
    for (const run of this.#runs) {
      const trials = await this.#recorded(run.caseId);
      for (const { key: trial, ordinal, report: state, answer } of this.#ledger.outbox.ofRun(run.key)) {
        const recorded = trials.find((one) => one.ordinal === ordinal);
        const name = `${this.#folder.slice(-1)} ${run.caseId} ${ordinal}`;
        if (recorded?.status !== 'reported') problems.push(`${name} is ${recorded?.status} at the service`);
        if (state === 'open') problems.push(`${name} is open here`);
        const hasReport = state !== 'open' && state !== 'taken';
        const own = hasReport && this.#ledger.outbox.body(trial).sandboxId === recorded?.sandboxId;
        if (state === 'delivered' && !own) problems.push(`${name} is delivered, and the service has another`);
        if (state === 'superseded' && own) problems.push(`${name} is superseded by itself`);
        if (state === 'queued' || state === 'sent' || state === 'parked')
          problems.push(`${name} is ${state}: ${answer}`);
      }
    }
    return problems;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
    this.#ledger[Symbol.dispose]();
  }

  #open(): { run: KnownRun; trial: number; ordinal: number }[] {
    return this.#runs.flatMap((run) =>
      this.#ledger.outbox
        .ofRun(run.key)
        .flatMap(({ key: trial, ordinal, report }) => (report === 'open' ? [{ trial, ordinal, run }] : [])),
    );
  }

  get #reporting() {
    return { ledger: this.#ledger, clock: this.#clock, sender: this.#sender, service };
  }

  #openSender(): ServiceSender {
    return new ServiceSender({ client: this.#client, ledger: this.#ledger, warn: () => undefined });
  }
}

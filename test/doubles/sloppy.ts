import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { type Answered, type Asked, type Double, listen, type Recorded } from './http.ts';

/**
 * The sloppy double: an Eval Service that checks nothing and answers as loosely as the specification leaves
 * room for.
 *
 * - What is absent is null. Optional fields are missing, unknown ones are everywhere, and so are values that
 *   no list has. Whole numbers come with fractions where a whole number was expected.
 * - Success is 200, 201, 202 or 204. Where the body of an answer is not shown, it is empty, `{}`, or a text.
 * - Each page has a record that cannot be read. Cases are listed without their suites.
 * - Answers are slow, and every fourth request is answered with 503 and `Retry-After` first.
 *
 * {@link Sloppiness} has what cannot be sloppy in two ways at once.
 */
export interface Sloppiness {
  pagesFrom: 0 | 1;
  /** Whether a trial is listed before it is recorded. */
  listsTrials: 'always' | 'recorded';
  /** What a report names: the run, or the batch and in it the run by `taskIndex`. The other is not found. */
  reportsBy: 'run' | 'batch';
  /** The status of a run that is not over. */
  openStatus: string;
}

const extra = { anExtraField: { deep: [1, null, 'x'] }, another: null };

interface Start {
  suite: { id: string; name: string; prompt: string };
  cases: { id: string; name: string; verify?: string; variables?: Record<string, unknown> }[];
  variants: { model: string; credentials?: Record<string, string> }[];
  trials: number;
}

interface Report {
  caseName: string;
  ordinal: number;
  taskIndex: number;
  sandboxId?: string;
  outcome: { passed?: boolean; modelMs?: number };
}

interface Run {
  id: string;
  batch: string;
  taskIndex: number;
  request: Start;
  case: Start['cases'][number];
  variantIndex: number;
  reports: Map<number, Report>;
}

const notFound: Answered = { status: 404, body: { message: 'no', _tag: 'NoSuchThing', ...extra } };

export async function openSloppyDouble(sloppiness: Partial<Sloppiness> = {}): Promise<Double> {
  const { pagesFrom, listsTrials, reportsBy, openStatus }: Sloppiness = {
    pagesFrom: 1,
    listsTrials: 'always',
    reportsBy: 'run',
    openStatus: 'running',
    ...sloppiness,
  };
  const key = `sloppy-${randomUUID()}`;
  const runs: Run[] = [];
  const recorded: Recorded[] = [];
  let requests = 0;

  async function answer({ operation, body }: Asked): Promise<Answered> {
    requests++;
    await setTimeout(50);
    if (requests % 4 === 2) return { status: 503, body: 'busy', headers: { 'retry-after': '0' } };
    return operations[operation]?.(JSON.parse(body || '{}') as never) ?? notFound;
  }

  const operations: Record<string, (request: never) => Answered | Promise<Answered>> = {
    'auth.whoami': () => ({
      status: 201,
      body: {
        credential: { kind: 'session', ...extra },
        organization: { id: 'o', name: 'O', slug: 'o', ...extra },
        permissions: ['evals:everything'],
        ...extra,
      },
    }),
    'evals.start': (request: Start) => {
      const added = begin(request);
      const listed = added.map(({ id, case: { id: caseId }, variantIndex }) => {
        return { id, caseId, variantIndex, ...extra };
      });
      return { status: 201, body: { id: added[0]?.batch, runs: listed, ...extra } };
    },
    'evals.runs.list': ({ caseId, page = pagesFrom }: { caseId: string; page?: number }) => {
      const all = runs.filter((run) => run.case.id === caseId).toReversed();
      const at = Math.max(0, page - pagesFrom) * 20;
      const listed = all.slice(at, at + 20).map(recordOf);
      return {
        status: 202,
        body: {
          page,
          pageSize: 20,
          // The broken record counts: nobody may ask for page 0 because one record is missing.
          total: all.length === 0 ? 0 : all.length + 1,
          runs: listed.length === 0 ? [] : [{ id: 7, trials: 'none' }, ...listed],
          ...extra,
        },
      };
    },
    'evals.cases.list': () => ({
      status: 200,
      body: { cases: [...new Set(runs.map((run) => run.case.id))].map((id) => ({ id, ...extra })), ...extra },
    }),
    'evals.reportTrial': async ({ id, trial }: { id: string; trial: Report }) => {
      const run = runs.find((one) =>
        reportsBy === 'run' ? one.id === id : one.batch === id && one.taskIndex === trial.taskIndex,
      );
      if (!run) return notFound;
      await double.onReport?.('before');
      run.reports.set(trial.ordinal, trial);
      const { passed } = trial.outcome;
      const { ordinal } = trial;
      recorded.push({ run: run.id, caseId: run.case.id, variantIndex: run.variantIndex, ordinal, passed });
      await double.onReport?.('after');
      return [{ status: 204 }, { status: 200, body: {} }, { status: 202, body: 'thank you' }][
        recorded.length % 3
      ] as Answered;
    },
    'evals.rerunCell': () => ({ status: 202, body: { id: 'run', ...extra } }),
    'connectors.integrations': () => ({
      status: 200,
      body: [{ id: 'x', label: 'X', category: 'unheard of', authMethods: [], ...extra }],
    }),
    'prompts.get': ({ id }: { id: string }) => ({
      status: 200,
      body: { id, version: 1.5, content: 'Do it.', channels: null, createdAt: null, ...extra },
    }),
    'prompts.promote': () => ({ status: 204 }),
  };

  function begin(request: Start): Run[] {
    const batch = randomUUID();
    const added = request.cases.flatMap((one) =>
      request.variants.map((_, variantIndex) => ({ one, variantIndex })),
    );
    const begun = added.map(
      ({ one, variantIndex }, taskIndex): Run => ({
        id: randomUUID(),
        batch,
        taskIndex,
        request,
        case: one,
        variantIndex,
        reports: new Map(),
      }),
    );
    runs.push(...begun);
    return begun;
  }

  function recordOf(run: Run): unknown {
    const { id, batch, request, case: of, reports } = run;
    const { model, credentials } = request.variants[run.variantIndex] ?? {};
    const filled = (text: string) =>
      text.replace(/\{\{(\w+)\}\}/g, (match, name) => String(of.variables?.[name] ?? match));
    const ordinals = listsTrials === 'always' ? [...Array(request.trials).keys()] : [...reports.keys()];
    return {
      id,
      batchId: batch,
      case: { id: of.id, ...extra },
      suite: { id: request.suite.id, name: null },
      variant: {
        id: `v${run.variantIndex}`,
        model,
        harness: credentials?.harnessConnectionId,
        sandbox: credentials?.sandboxConnectionId,
        profile: null,
        userModel: null,
      },
      status: reports.size === request.trials ? 'done' : openStatus,
      local: true,
      startedAt: null,
      finishedAt: null,
      costs: null,
      // The one number that says how many trials there are, if they are not listed.
      distribution: { trials: request.trials, scored: 0, passed: 0, failed: 0, voided: 0, passRate: null },
      setup: {
        prompt: filled(request.suite.prompt),
        prepare: null,
        validator: null,
        validatorFiles: null,
        verify: of.verify === undefined ? null : filled(of.verify),
        ...extra,
      },
      trigger: { source: 'a cat', url: null },
      trials: ordinals.map((ordinal) => trialOf(id, ordinal, reports.get(ordinal))),
      ...extra,
    };
  }

  const listening = await listen(answer, { pagesFrom });
  const double: Double = {
    ...listening,
    env: { OFFSITE_URL: listening.url, OFFSITE_API_KEY: key },
    recorded,
    triggers: [],
    onReport: undefined,
    async start(request) {
      begin(request as Start);
    },
  };
  return double;
}

function trialOf(run: string, ordinal: number, report: Report | undefined): unknown {
  if (!report) return { id: `${run}-${ordinal}`, ordinal, status: 'queued', usage: null, ...extra };
  return {
    id: `${run}-${ordinal}`,
    ordinal,
    status: 'taken note of',
    sandboxId: report.sandboxId,
    modelMs: null,
    validations: [
      {
        id: 'v',
        index: 0.5,
        name: 'v',
        kind: 'odd',
        durationMs: 1.5,
        input: { text: 'x', format: 'wax', state: 'melted' },
      },
    ],
    trajectory: [{ _tag: 'thought', text: 'hm' }],
    ...extra,
  };
}

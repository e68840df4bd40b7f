import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Answered, type Asked, type Double, listen, type Recorded } from './http.ts';
import {
  between,
  boolean,
  freeForm,
  type Issue,
  integer,
  listOf,
  number,
  object,
  oneOf,
  type Shape,
  string,
} from './shape.ts';

/**
 * The strict double: an Eval Service that takes exactly what the specification shows.
 *
 * - Every field shown is required, none else is allowed, and none may be null. Only what a sender cannot know
 *   may be missing: a part that a case does not have (its user, prepare, validator and verify), what started
 *   the run (`trigger`), the filter of a list, a text that does not exist, and a measurement that
 *   `voidFields` names.
 * - Numbers are integers where the specification says so. The only event is `Started`.
 * - Pages count from 1; a page below is refused. Each answer has the fewest fields that can be used.
 * - A report names the run, never the batch. A second report with other content is a conflict.
 * - A key without the permission is forbidden; a request without a key gets 401.
 */

const text = object({ text: string, truncated: boolean });
const usage = [
  'cacheReadTokens',
  'cacheWriteTokens',
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'costUsd',
];

const suiteCase = object(
  {
    id: string,
    name: string,
    user: object({ kind: oneOf('simulated'), goal: string, prompt: string }),
    prepare: object({ name: string, source: string }),
    source: object({ kind: oneOf('empty') }),
    tags: listOf(string),
    variables: freeForm,
    validator: object({
      name: string,
      source: string,
      capture: boolean,
      manifest: listOf(object({ index: integer, name: string })),
      sourceFiles: listOf(object({ path: string, content: string })),
    }),
    verify: string,
  },
  () => ['user', 'prepare', 'validator', 'verify'],
);

const credentials = object({ harnessConnectionId: string, sandboxConnectionId: string });
const startRequest = object(
  {
    cases: listOf(suiteCase, 1, 100),
    suite: object({ id: string, name: string, prompt: string }),
    trials: between(1, 10),
    variants: listOf(object({ model: string, credentials }), 1, 20),
    local: boolean,
    trigger: object({ url: string }),
  },
  () => ['trigger'],
);

const call = object(
  { index: integer, startedAt: number, durationMs: integer, input: text, output: text, error: text },
  () => ['input', 'output', 'error'],
);
const validationFields = {
  id: string,
  index: integer,
  name: string,
  startedAt: number,
  durationMs: integer,
  message: string,
  exitCode: number,
  truncated: boolean,
  input: text,
  output: text,
  error: text,
  calls: listOf(call),
  logs: listOf(object({ index: integer, at: number, value: text })),
};
const judgment = object(
  {
    name: string,
    model: string,
    evaluator: string,
    score: number,
    choice: string,
    reason: string,
    threshold: number,
    durationMs: integer,
    error: string,
  },
  () => ['score', 'choice', 'reason', 'threshold', 'error'],
);

/** The fields of an outcome that its `voidFields` name, or with `prefix`, what they name below it. */
function voidOf(outcome: unknown, prefix = ''): string[] {
  const { voidFields } = (outcome ?? {}) as { voidFields?: unknown };
  if (!Array.isArray(voidFields)) return [];
  return voidFields.flatMap((name) =>
    typeof name === 'string' && name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  );
}

const outcome: Shape = (value, path) =>
  object(
    {
      commandCount: number,
      exitCode: number,
      modelMs: number,
      sandboxMs: number,
      passed: boolean,
      verifySteps: listOf(object({ command: string, exitCode: number })),
      voidFields: listOf(string),
      artifacts: listOf(object({ path: string, byteSize: integer, sha256: string })),
      validations: listOf(
        object(validationFields, () => [
          'message',
          'exitCode',
          'input',
          'output',
          'error',
          ...voidOf(value, 'validations.'),
        ]),
      ),
      judgments: listOf(judgment),
    },
    voidOf,
  )(value, path);

const started = object({ _tag: oneOf('Started'), model: string, sessionId: string, at: number });

/** A reported trial with every field that its `voidFields` do not name. */
export function reportedTrial(value: unknown, path: (string | number)[]): Issue[] {
  const found = (value as { outcome?: unknown } | null)?.outcome ?? {};
  return object(
    {
      caseName: string,
      ordinal: integer,
      taskIndex: integer,
      sandboxId: string,
      events: listOf(started),
      outcome,
      usage: object(Object.fromEntries(usage.map((name) => [name, number])), () => voidOf(found, 'usage.')),
    },
    () => voidOf(found),
  )(value, path);
}

const requests: Record<string, { permission?: string; shape: Shape }> = {
  'auth.whoami': { shape: object({}) },
  'evals.start': { permission: 'evals:write', shape: startRequest },
  'evals.runs.list': {
    permission: 'evals:read',
    shape: object({ caseId: string, page: between(1, 1_000_000), variant: string }, () => ['variant']),
  },
  'evals.rerunCell': {
    permission: 'evals:write',
    shape: object({ id: string, cellKey: string, trials: between(1, 10) }),
  },
  'evals.reportTrial': {
    permission: 'evals:write',
    shape: object({ id: string, trial: reportedTrial }),
  },
  'evals.cases.list': { permission: 'evals:read', shape: object({ suite: string }, () => ['suite']) },
  'connectors.integrations': { permission: 'credentials:read', shape: object({}) },
  'prompts.get': { permission: 'prompts:read', shape: object({ id: string }) },
};

interface StartedCase {
  id: string;
  name: string;
  prepare?: { source: string };
  source: { kind: string };
  verify?: string;
  variables: Record<string, unknown>;
  validator?: { source: string; sourceFiles: { path: string; content: string }[] };
}

interface Start {
  suite: { id: string; name: string; prompt: string };
  cases: StartedCase[];
  variants: { model: string; credentials: Record<'harnessConnectionId' | 'sandboxConnectionId', string> }[];
  trials: number;
  local: boolean;
  trigger?: unknown;
}

interface Run {
  id: string;
  batch: string;
  request: Start;
  case: StartedCase;
  variantIndex: number;
  trials: number;
  startedAt: string;
  reports: Map<number, unknown>;
}

class Refused extends Error {
  readonly answered: Answered;

  constructor(status: number, body: object, headers: Record<string, string> = {}) {
    super(JSON.stringify(body));
    this.answered = { status, body, headers };
  }
}

/** Opens a strict double. Its key has the given permissions. */
export async function openStrictDouble(
  permissions = ['evals:read', 'evals:write', 'credentials:read', 'prompts:read'],
): Promise<Double> {
  const key = `strict-${randomUUID()}`;
  const runs: Run[] = [];
  const recorded: Recorded[] = [];
  const triggers: unknown[] = [];

  async function answer(asked: Asked): Promise<Answered> {
    try {
      return { status: 200, body: await handle(asked) };
    } catch (error) {
      if (error instanceof Refused) return error.answered;
      throw error;
    }
  }

  async function handle({ operation, headers, body }: Asked): Promise<unknown> {
    if (headers.authorization !== `Bearer ${key}`) {
      const where = { 'www-authenticate': 'Bearer realm="strict"' };
      throw new Refused(401, { _tag: 'Unauthorized', message: 'The key is unknown.' }, where);
    }
    const known = requests[operation];
    if (!known) throw new Refused(404, { _tag: 'NotFound', message: 'There is no such operation.' });
    if (known.permission !== undefined && !permissions.includes(known.permission)) {
      throw new Refused(403, { _tag: 'Forbidden', message: `The key lacks ${known.permission}.` });
    }
    const request = decoded(headers['content-type'], body);
    const issues = known.shape(request, []);
    if (issues.length > 0) throw refusedBody(issues);
    return operations[operation]?.(request as never);
  }

  const operations: Record<string, (request: never) => unknown> = {
    'auth.whoami': () => ({
      credential: { kind: 'apiKey', name: null, start: null },
      organization: { id: 'org', name: 'Strict', slug: 'strict' },
      permissions,
    }),
    'evals.start': (request: Start) => {
      const batch = randomUUID();
      triggers.push(request.trigger);
      const added = request.cases.flatMap((one) =>
        request.variants.map((_, variantIndex) => addRun(batch, request, one, variantIndex, request.trials)),
      );
      return {
        id: batch,
        runs: added.map(({ id, case: of, variantIndex }) => ({ caseId: of.id, id, variantIndex })),
      };
    },
    'evals.rerunCell': ({ id, cellKey, trials }: { id: string; cellKey: string; trials: number }) => {
      const run = runs.find((one) => one.batch === id && cellKey === `${one.case.id}:${variantId(one)}`);
      if (!run) throw new Refused(404, { _tag: 'NotFound', message: 'There is no such cell.' });
      return { id: addRun(run.batch, run.request, run.case, run.variantIndex, trials).id };
    },
    'evals.runs.list': ({ caseId, page, variant }: { caseId: string; page: number; variant?: string }) => {
      const all = runs
        .filter((run) => run.case.id === caseId && (variant ?? variantId(run)) === variantId(run))
        .toReversed();
      const listed = all.slice((page - 1) * 20, page * 20);
      return { page, pageSize: 20, total: all.length, runs: listed.map(recordOf) };
    },
    'evals.cases.list': ({ suite }: { suite?: string }) => {
      const all = runs.map(({ request, case: { id } }) => ({ id, suite: { id: request.suite.id } }));
      const listed = all.filter((one) => suite === undefined || one.suite.id === suite);
      return { cases: [...new Map(listed.map((one) => [JSON.stringify(one), one])).values()] };
    },
    'evals.reportTrial': report,
    'connectors.integrations': () => [],
    'prompts.get': ({ id }: { id: string }) => ({ id, version: 1, content: 'Do it.' }),
  };

  function addRun(batch: string, request: Start, of: StartedCase, variantIndex: number, trials: number): Run {
    const startedAt = new Date().toISOString();
    const run: Run = {
      id: randomUUID(),
      batch,
      request,
      case: of,
      variantIndex,
      trials,
      startedAt,
      reports: new Map(),
    };
    runs.push(run);
    return run;
  }

  async function report({ id, trial }: { id: string; trial: Record<string, unknown> }): Promise<unknown> {
    const run = runs.find((one) => one.id === id);
    const ordinal = trial.ordinal as number;
    if (!run || ordinal < 0 || ordinal >= run.trials) {
      throw new Refused(404, { _tag: 'NotFound', message: 'There is no such run or trial.' });
    }
    if (trial.caseName !== run.case.name || !run.request.local) {
      throw new Refused(409, { _tag: 'Conflict', message: 'The run is of another case, or not local.' });
    }
    await double.onReport?.('before');
    const before = run.reports.get(ordinal);
    if (before !== undefined && !isDeepStrictEqual(before, trial)) {
      throw new Refused(409, { _tag: 'Conflict', message: 'The trial has another result.' });
    }
    if (before === undefined) {
      run.reports.set(ordinal, trial);
      const { passed } = trial.outcome as { passed?: boolean };
      recorded.push({ run: id, caseId: run.case.id, variantIndex: run.variantIndex, ordinal, passed });
    }
    await double.onReport?.('after');
    return {};
  }

  const listening = await listen(answer, { pagesFrom: 1 });
  const double: Double = {
    ...listening,
    env: { OFFSITE_URL: listening.url, OFFSITE_API_KEY: key },
    recorded,
    triggers,
    onReport: undefined,
    async start(request) {
      const issues = startRequest(request, []);
      if (issues.length > 0) throw refusedBody(issues);
      operations['evals.start']?.(request as never);
    },
  };
  return double;
}

function decoded(type: string | undefined, body: string): unknown {
  if (type !== 'application/json') {
    throw refusedBody([{ _tag: 'Type', path: [], message: 'the body must be application/json' }]);
  }
  try {
    return JSON.parse(body);
  } catch {
    throw refusedBody([{ _tag: 'Type', path: [], message: 'the body must be JSON' }]);
  }
}

function refusedBody(issues: Issue[]): Refused {
  return new Refused(400, { _tag: 'HttpApiDecodeError', message: 'The body was not accepted.', issues });
}

function variantId({ request, variantIndex }: Run): string {
  return `variant-${variantIndex}-${request.variants[variantIndex]?.model}`;
}

/** The fewest fields with which the run can be worked on. */
function recordOf(run: Run): unknown {
  const { id, batch, request, case: of, startedAt, reports } = run;
  const { suite, variants, local } = request;
  const { model, credentials } = variants[run.variantIndex] ?? {};
  const filled = (text: string) =>
    text.replace(/\{\{(\w+)\}\}/g, (match, name) => String(of.variables[name] ?? match));
  return {
    id,
    batchId: batch,
    case: { id: of.id, name: of.name },
    suite: { id: suite.id, name: suite.name },
    variant: {
      id: variantId(run),
      model,
      harness: credentials?.harnessConnectionId,
      sandbox: credentials?.sandboxConnectionId,
    },
    status: 'running',
    local,
    startedAt,
    setup: {
      prompt: filled(suite.prompt),
      source: of.source,
      ...(of.prepare && { prepare: filled(of.prepare.source) }),
      ...(of.verify !== undefined && { verify: filled(of.verify) }),
      ...(of.validator && {
        validator: filled(of.validator.source),
        validatorFiles: of.validator.sourceFiles,
      }),
    },
    trials: Array.from({ length: run.trials }, (_, ordinal) => {
      const report = reports.get(ordinal) as { sandboxId?: string } | undefined;
      const state = report ? { status: 'reported', sandboxId: report.sandboxId } : { status: 'queued' };
      return { id: `${id}-${ordinal}`, ordinal, ...state };
    }),
  };
}

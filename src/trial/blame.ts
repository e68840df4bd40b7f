import { firstThrown, messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { Cause, PhaseName } from '../record/cause.ts';
import type { JudgeAnswer } from '../validate/model-calls.ts';

/**
 * Whose fault it is that a trial went wrong. The decision uses what Offsite saw for itself and what its
 * experiments showed. It never uses the words of a program, an engine or a model: a list of such words cannot
 * be complete.
 */

/** What may be known of a trial. Every experiment begins with the value `untried`. */
const known = {
  /**
   * Whether an agent was there. `acted`: its model answered, or the program of the harness may be an agent.
   * `absent`: nothing answered. `unseen`: it may have asked a model that is not Offsite's.
   */
  agent: ['acted', 'absent', 'unseen'],
  /** How the last decided request of the agent's model ended, as the gateway saw it. */
  model: ['unasked', 'unanswered', 'answered', 'refused', 'failed'],
  /**
   * How the harness ended. `mute`: it exited, and never tells whether its model failed. `crashed`: it says
   * that it or its model failed, or its end cannot be read. `stopped`: by a budget.
   */
  harness: [
    'exited',
    'exited with an error',
    'mute',
    'gave up',
    'crashed',
    'timed out',
    'out of room',
    'stopped',
  ],
  /**
   * Whether the agent's model answers a short question of Offsite's own, after it refused one of the agent's.
   */
  probe: ['untried', 'answers', 'silent'],
  /**
   * What the grading of the work ended with: a verdict, or a fault of the machine, of a judge's model or of
   * the case's checks.
   */
  work: ['untried', 'verdict', 'machine', 'judge', 'checks'],
  /** The same for a workspace that no agent touched, in new sandboxes. */
  untouched: ['untried', 'verdict', 'machine', 'judge', 'checks'],
  /** The same for the author's solution. */
  solved: ['untried', 'none', 'verdict', 'machine', 'judge', 'checks'],
  /**
   * Whether a judge's models answer the question that failed, without the material to judge. `wrong`: it is
   * no question, or nobody is there to answer it.
   */
  judge: ['untried', 'answers', 'silent', 'wrong'],
  /** The work again, after a control that had a verdict. */
  again: ['untried', 'verdict', 'same fault', 'other fault'],
  /** That control again, after the work. */
  after: ['untried', 'verdict', 'fault'],
} as const;

export type Evidence = { -readonly [Name in keyof typeof known]: (typeof known)[Name][number] };
export const evidenceValues: { [Name in keyof Evidence]: readonly Evidence[Name][] } = known;

/** An experiment that shows more. It has the name of what it shows. */
export type Experiment = 'probe' | 'untouched' | 'solved' | 'judge' | 'again' | 'after';

export type Blame = 'agent' | 'harness' | 'model' | 'machine' | 'suite' | 'unknown';

export type Decision =
  /** The work is graded, or its verdict stands. */
  { kind: 'grade' } | { kind: 'try'; experiment: Experiment } | { kind: 'blame'; blame: Blame };

interface Row {
  /** All of these must hold. */
  when: { [Name in keyof Evidence]?: readonly Evidence[Name][] };
  next: 'grade' | Blame | `try ${Experiment}`;
  why: string;
}

const atEnd = { work: ['untried'] } as const;
const nobody = { ...atEnd, agent: ['absent'] } as const;
const noVerdict = ['machine', 'judge', 'checks'] as const;
const onlySolved = { work: noVerdict, untouched: ['checks'] } as const;

/** The first row that holds decides. */
export const blameTable: readonly Row[] = [
  {
    when: {
      ...nobody,
      harness: ['exited with an error', 'gave up', 'crashed', 'timed out'],
      model: ['unasked'],
    },
    next: 'harness',
    why: 'it ended with an error, or did nothing, before it asked its model',
  },
  {
    when: { ...nobody, harness: ['out of room'] },
    next: 'harness',
    why: 'it used up the memory or the disk before its model answered',
  },
  {
    when: { ...nobody, model: ['failed', 'refused'] },
    next: 'model',
    why: 'it answered nothing but errors',
  },
  {
    when: { ...nobody, harness: ['timed out'] },
    next: 'model',
    why: 'it did not answer until the time was over',
  },
  {
    when: { ...nobody, harness: ['exited with an error', 'gave up', 'crashed', 'stopped'] },
    next: 'unknown',
    why: 'the model had not answered when the harness ended',
  },
  {
    when: { ...atEnd, model: ['failed'], harness: ['crashed', 'mute'] },
    next: 'model',
    why: 'its last answer was a failure, and the harness ended after it',
  },
  {
    when: { ...atEnd, model: ['refused'], harness: ['crashed', 'mute'], probe: ['untried'] },
    next: 'try probe',
    why: 'does it refuse everything, or what the agent asked?',
  },
  {
    when: { ...atEnd, model: ['refused'], harness: ['crashed', 'mute'], probe: ['silent'] },
    next: 'model',
    why: 'it refuses a short question too',
  },
  {
    when: { ...atEnd, agent: ['unseen'], harness: ['crashed'] },
    next: 'unknown',
    why: 'the harness may have asked a model that Offsite does not see',
  },
  { when: atEnd, next: 'grade', why: 'what was done is graded' },
  { when: { work: ['verdict'] }, next: 'grade', why: 'the verdict stands' },
  {
    when: { work: ['judge'], judge: ['untried'] },
    next: 'try judge',
    why: 'does its model answer without the work?',
  },
  {
    when: { work: ['judge'], judge: ['silent'] },
    next: 'model',
    why: 'the model of a judge answers nothing without the work either',
  },
  {
    when: { work: ['judge'], judge: ['wrong'] },
    next: 'suite',
    why: 'its question to a judge cannot be answered',
  },
  {
    when: { work: noVerdict, untouched: ['untried'] },
    next: 'try untouched',
    why: 'is there a verdict without the agent?',
  },
  {
    when: { work: noVerdict, untouched: ['machine'] },
    next: 'machine',
    why: 'without the agent, it fails too',
  },
  {
    when: { work: ['machine', 'checks'], untouched: ['judge'] },
    next: 'model',
    why: 'the model of a judge fails without the agent',
  },
  {
    when: { work: ['judge'], untouched: ['judge'] },
    next: 'unknown',
    why: 'the model of a judge fails without the agent too, and answers an empty question',
  },
  {
    when: { ...onlySolved, solved: ['untried'] },
    next: 'try solved',
    why: 'do the checks give a verdict where the work is done?',
  },
  {
    when: { ...onlySolved, work: ['checks'], solved: ['none'] },
    next: 'suite',
    why: 'its checks give no verdict without the agent either, and it has no solution to try them on',
  },
  {
    when: { ...onlySolved, work: ['checks'], solved: ['checks'] },
    next: 'suite',
    why: 'its checks give no verdict without the agent either',
  },
  { when: { ...onlySolved, solved: ['machine'] }, next: 'machine', why: 'without the agent, it fails too' },
  {
    when: { ...onlySolved, solved: ['judge'] },
    next: 'model',
    why: 'the model of a judge fails without the agent too',
  },
  {
    when: { ...onlySolved, solved: ['none', 'checks'] },
    next: 'unknown',
    why: 'the work and an untouched workspace have no verdict for different reasons',
  },
  { when: { again: ['untried'] }, next: 'try again', why: 'did the fault pass?' },
  { when: { again: ['verdict'] }, next: 'grade', why: 'the second verdict stands' },
  {
    when: { agent: ['absent'] },
    next: 'harness',
    why: 'no model answered, and what it left cannot be graded',
  },
  {
    when: { again: ['other fault'], after: ['untried'] },
    next: 'try after',
    why: 'is there still a verdict without the work?',
  },
  {
    when: { work: ['judge'], after: ['untried'] },
    next: 'try after',
    why: 'does the model of the judge still answer without the work?',
  },
  {
    when: { work: ['judge'], again: ['same fault'], after: ['fault'] },
    next: 'model',
    why: 'the model of a judge no longer answers without the work',
  },
  {
    when: { again: ['other fault'], after: ['fault'] },
    next: 'unknown',
    why: 'neither the work nor the control has the same result twice',
  },
  {
    when: { solved: ['untried'] },
    next: 'try solved',
    why: 'do the checks give a verdict where the work is done?',
  },
  {
    when: { solved: ['none', 'verdict'] },
    next: 'agent',
    why: 'twice there was no verdict, and there was one without the work in between',
  },
  { when: { solved: ['machine'] }, next: 'machine', why: 'the solution of the case cannot be graded either' },
  { when: { solved: ['judge'] }, next: 'model', why: 'the model of a judge fails with the solution too' },
  {
    when: { work: ['checks', 'judge'] },
    next: 'suite',
    why: 'its checks give no verdict on the solution of the case either',
  },
  { when: {}, next: 'unknown', why: 'the checks give no verdict on the solution of the case' },
];

/** Decides from what is known so far: whose fault it is, or what to try next. */
export function blameOf(evidence: Evidence): Decision & { why: string } {
  const row = blameTable.find(({ when }) =>
    Object.entries(when).every(([name, values]) =>
      (values as readonly string[]).includes(evidence[name as keyof Evidence]),
    ),
  );
  if (!row) throw new Error('the last row of the table holds for everything');
  return { ...decisionOf(row.next), why: row.why };
}

function decisionOf(next: Row['next']): Decision {
  if (next === 'grade') return { kind: 'grade' };
  if (next.startsWith('try ')) return { kind: 'try', experiment: next.slice(4) as Experiment };
  return { kind: 'blame', blame: next as Blame };
}

/** What is known before anything was tried. */
export const nothingTried = {
  probe: 'untried',
  work: 'untried',
  untouched: 'untried',
  solved: 'untried',
  judge: 'untried',
  again: 'untried',
  after: 'untried',
} as const satisfies Partial<Evidence>;

/** What a grading that gave no verdict met. Two of the same name are the same fault. */
export interface Fault {
  from: 'machine' | 'judge' | 'checks';
  name: string;
}

interface Settled {
  /** Undefined if there is a verdict, or if its absence needs no explanation. */
  fault: Fault | undefined;
}

interface Experiments<Result> {
  again(): Promise<Result>;
  untouched(): Promise<Result>;
  /** Undefined if the case has no solution. */
  solved: (() => Promise<Result>) | undefined;
  /** How a judge's models answer the question that failed, without the work. */
  askJudge(failed: Result): Promise<JudgeAnswer>;
}

export interface Blamed<Result> {
  blame: Blame;
  why: string;
  /** The last control, of an untouched workspace or of the solution. Undefined if only a judge was asked. */
  control: { of: 'untouched' | 'solved'; graded: Result } | undefined;
}

/**
 * Tries what the table of {@link blameOf} asks for, until it decides. `blamed` is undefined for a verdict.
 */
export async function settle<Result extends Settled>(
  first: Result,
  agent: Evidence['agent'],
  { again, untouched, solved, askJudge }: Experiments<Result>,
): Promise<{ graded: Result; blamed: Blamed<Result> | undefined }> {
  const evidence: Evidence = {
    ...nothingTried,
    agent,
    model: 'answered',
    harness: 'exited',
    work: seen(first),
  };
  let last = first;
  let control: Blamed<Result>['control'];
  const look = async (of: 'untouched' | 'solved', grade: () => Promise<Result>) => {
    const graded = await grade();
    control = { of, graded };
    return seen(graded);
  };
  for (;;) {
    const decision = blameOf(evidence);
    if (decision.kind === 'grade') return { graded: last, blamed: undefined };
    if (decision.kind === 'blame') return { graded: last, blamed: { ...decision, control } };
    switch (decision.experiment) {
      case 'probe':
        throw new Error('a harness that ended is no question of grading');
      case 'judge':
        evidence.judge = await askJudge(last);
        break;
      case 'untouched':
        evidence.untouched = await look('untouched', untouched);
        break;
      case 'solved':
        evidence.solved = solved ? await look('solved', solved) : 'none';
        break;
      case 'again': {
        const { fault } = last;
        last = await again();
        const isSame = last.fault?.from === fault?.from && last.fault?.name === fault?.name;
        evidence.again = !last.fault ? 'verdict' : isSame ? 'same fault' : 'other fault';
        break;
      }
      case 'after': {
        const byJudge = last.fault?.from === 'judge';
        const bySolution = evidence.untouched !== 'verdict' && solved;
        const isFine = byJudge
          ? (await askJudge(last)) === 'answers'
          : (await (bySolution ? look('solved', solved) : look('untouched', untouched))) === 'verdict';
        evidence.after = isFine ? 'verdict' : 'fault';
      }
    }
  }
}

function seen({ fault }: Settled): 'verdict' | Fault['from'] {
  return fault ? fault.from : 'verdict';
}

/** Thrown when a trial cannot get a verdict. `failure` says what went wrong and who caused it. */
export class TrialFailure extends OffsiteError {
  override readonly name = 'TrialFailure';
  readonly failure: Cause;

  constructor(failure: Cause, cause?: unknown) {
    super(failure.message, { code: 'TRIAL_VOID', kind: 'infrastructure', cause });
    this.failure = failure;
  }
}

/** The failure of a case whose own scripts, files or images cannot be used. */
export function taskFailure(phase: Cause['phase'], message: string, output?: string): TrialFailure {
  return new TrialFailure({ kind: 'task', phase, message, ...(output !== undefined && { output }) });
}

/** The failure for a case whose image, build or service cannot be used. */
export function unusable(message: string): TrialFailure {
  return taskFailure('sandbox', message);
}

/**
 * The cause that a thrown error stands for: the error's own cause if it has one, otherwise infrastructure.
 */
export function causeOf(caught: unknown, phase: PhaseName): Cause {
  // If removing the sandbox fails too, that must not hide why the trial was given up.
  const thrown = firstThrown(caught);
  if (thrown instanceof TrialFailure) return thrown.failure;
  if (thrown instanceof OffsiteError) {
    const message = thrown.hint === undefined ? thrown.message : `${thrown.message}\n${thrown.hint}`;
    // The author of the case or the profile put the key there, so another attempt would end the same way.
    const isAuthors = thrown.code === 'KEY_IN_SANDBOX';
    return { kind: isAuthors ? 'task' : 'infrastructure', phase, message };
  }
  // This is a bug in Offsite. The trial is void, never failed. The stack trace helps to fix the bug.
  const stack = thrown instanceof Error ? thrown.stack : undefined;
  return { kind: 'infrastructure', phase, message: `unexpected: ${messageOf(thrown)}`, output: stack };
}

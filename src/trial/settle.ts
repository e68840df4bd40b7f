import type { JudgeAnswer } from '../validate/model-calls.ts';
import { type Blame, blameOf, type Evidence, nothingTried } from './blame.ts';

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

import { validatorRecords } from '../../bounds/grading.ts';
import type { Judgment } from '../../contract/validation.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { captured } from '../texts.ts';
import type { Asking } from './ask-model.ts';
import { castVote } from './cast-vote.ts';
import type { JudgeRequest } from './requests.ts';
import { majority, median, type Vote } from './votes.ts';

export interface Judged {
  judgment: Judgment;
  /** The result for the validator. Undefined if `failure` is set. */
  result?: { score?: number; choice?: string; reason: string; passed?: boolean; votes: Vote[] };
  /** Why there is no judgment. */
  failure?: OffsiteError;
}

/**
 * Asks all judges for their votes at once and combines them into one judgment. If a single vote fails, there
 * is no judgment.
 */
export async function judge(request: JudgeRequest, name: string, asking: Asking): Promise<Judged> {
  const startedAt = asking.clock.now();
  const models: readonly (string | undefined)[] = request.models ?? [undefined];
  const casting = models.flatMap((model) =>
    Array.from({ length: request.votes }, (_, number) => castVote(request, { model, number }, asking)),
  );
  const settled = await Promise.allSettled(casting);
  const durationMs = asking.clock.now() - startedAt;
  const facts = {
    name,
    evaluator: 'rubric',
    durationMs,
    ...(request.threshold !== undefined && { threshold: request.threshold }),
  };
  const failed = settled.find((outcome) => outcome.status === 'rejected');
  if (failed) {
    if (!(failed.reason instanceof OffsiteError)) throw failed.reason;
    return { judgment: { ...facts, error: messageOf(failed.reason) }, failure: failed.reason };
  }
  const votes = settled.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const { score, choice } = combined(votes, request);
  const reason = captured(reasonOf(votes), validatorRecords.bytes.reason).text;
  const verdict = { ...(score !== undefined && { score }), ...(choice !== undefined && { choice }), reason };
  const passed = request.threshold === undefined ? undefined : (score ?? 0) >= request.threshold;
  return {
    judgment: { ...facts, model: [...new Set(votes.map(({ model }) => model))].join(', '), ...verdict },
    result: { ...verdict, ...(passed !== undefined && { passed }), votes },
  };
}

function combined(votes: readonly Vote[], { choices }: JudgeRequest): { score?: number; choice?: string } {
  if (choices === undefined) return { score: median(votes.map(({ score = 0 }) => score)) };
  const scored = Array.isArray(choices) ? undefined : choices;
  const offered = Array.isArray(choices)
    ? choices.map((word) => ({ word }))
    : Object.entries(choices).map(([word, score]) => ({ word, score }));
  const choice = majority(
    votes.map((vote) => vote.choice ?? ''),
    offered,
  );
  const score = scored?.[choice];
  return { choice, ...(score !== undefined && { score }) };
}

function reasonOf(votes: readonly Vote[]): string {
  const [only] = votes;
  if (only && votes.length === 1) return only.reason;
  return votes
    .map(({ model, score, choice, reason }) => `${model}: ${choice ?? score}: ${reason}`)
    .join('\n');
}

import { z } from 'zod';
import { OffsiteError } from '../../base/offsite-error.ts';
import { validatorRecords } from '../../bounds/grading.ts';

/** The requests that validators may make. The types of the sandboxed API describe the same to authors. */

const Material = z
  .union([z.string(), z.record(z.string(), z.string())])
  .transform((material) => (typeof material === 'string' ? { work: material } : material));

export const AnswerRequest = z.strictObject({
  prompt: z.string().min(1),
  material: Material.default({}),
  model: z.string().optional(),
  temperature: z.number().min(0).optional(),
  seed: z.int().optional(),
});
export type AnswerRequest = z.infer<typeof AnswerRequest>;

const Score = z.number().min(0).max(1);

export const JudgeRequest = z
  .strictObject({
    rubric: z.string().min(1),
    material: Material,
    name: z.string().min(1).optional(),
    threshold: Score.optional(),
    choices: z.union([z.array(z.string().min(1)).min(2), z.record(z.string().min(1), Score)]).optional(),
    models: z.array(z.string().min(1)).min(1).optional(),
    votes: z.int().min(1).max(validatorRecords.count.votes).default(1),
    temperature: z.number().min(0).optional(),
    seed: z.int().optional(),
  })
  .refine(({ choices, threshold }) => !(Array.isArray(choices) && threshold !== undefined), {
    message: 'a threshold needs choices with scores, or no choices',
  });
export type JudgeRequest = z.infer<typeof JudgeRequest>;

/** Throws an `input` error that says what is wrong with a validator's request. */
export function readAsk<Schema extends z.ZodType>(schema: Schema, request: unknown): z.output<Schema> {
  const read = schema.safeParse(request);
  if (read.success) return read.data;
  const issues = read.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the request'}: ${message}`,
  );
  throw new OffsiteError(`the request is invalid: ${issues.join('; ')}`, {
    code: 'ASK_MALFORMED',
    kind: 'input',
  });
}

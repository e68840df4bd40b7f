import { z } from 'zod';
import { Usage } from '../contract/report.ts';
import { At, Millis, Sha256 } from './measures.ts';

/** Where the answer of an exchange came from, if it was not from a model. */
export const ReplayedExchange = z
  .object({
    of: z.string().meta({ description: 'The batch or the cassette that has the recorded exchange.' }),
    trial: z.string().meta({ description: 'The trial that was recorded.' }),
    number: z.number().meta({ description: 'Its place among the exchanges of that trial, from 1.' }),
    how: z.enum(['exact', 'known', 'conversation', 'order']).meta({
      description:
        'What of the request is equal. `known`: all but shapes such as dates. `conversation`: what was said, ' +
        'called and returned. `order`: nothing is compared, another harness gets the answers in their order.',
    }),
    differs: z
      .array(z.enum(['context', 'tools', 'options']))
      .optional()
      .meta({ description: 'With `conversation`: the parts of the request that differ.' }),
    again: z.literal(true).optional().meta({
      description: 'The recorded answer was given before: the request came more often than it was recorded.',
    }),
  })
  .meta({ description: 'The answer is a recorded one, and cost nothing.' });
export type ReplayedExchange = z.infer<typeof ReplayedExchange>;

const ModelRole = z.enum(['agent', 'user', 'judge']);

const Losses = z.array(z.object({ path: z.string(), kind: z.string(), times: z.number() }));

const ModelExchange = z
  .object({
    role: ModelRole,
    model: z.string(),
    wire: z.string(),
    path: z.string(),
    streamed: z.boolean(),
    startedAt: At,
    firstByteAt: At.optional(),
    finishedAt: At,
    status: z.number().optional().meta({
      description: 'The status that the sandbox received. Absent if the connection ended first.',
    }),
    failedTries: z.array(z.object({ at: At, reason: z.string() })),
    failure: z.string().optional().meta({
      description:
        'Why it did not succeed: aborted by the client, cut by the upstream, refused by the gateway.',
    }),
    usage: Usage,
    answeredBy: z.string().optional(),
    requestBytes: z.number(),
    responseBytes: z.number(),
    requestBody: Sha256.optional().meta({ description: 'With `record: full`.' }),
    responseBody: Sha256.optional().meta({ description: 'With `record: full`.' }),
    losses: Losses.optional().meta({
      description: 'What the server of the model does not accept, so that it was left out of the request.',
    }),
    translation: z
      .object({
        from: z.string().meta({ description: "The harness's wire." }),
        losses: Losses.meta({
          description: 'What one of the two wires cannot carry, and was left out.',
        }),
        estimated: z.literal(true).optional().meta({ description: 'A count of tokens that is an estimate.' }),
      })
      .optional()
      .meta({
        description:
          'If the harness spoke another wire than the model. All else here is what the model got and gave.',
      }),
    unscripted: z.literal(true).optional().meta({
      description:
        'A conversation began for which the script of the model has no turn: `otherwise` answered.',
    }),
    replayed: ReplayedExchange.optional(),
  })
  .meta({ description: 'One request to a model.' });
export type ModelExchange = z.infer<typeof ModelExchange>;

export const HostConnection = z.object({
  host: z.string(),
  port: z.number(),
  startedAt: At,
  finishedAt: At,
  sentBytes: z.number(),
  receivedBytes: z.number(),
  failure: z.string().optional(),
});
export type HostConnection = z.infer<typeof HostConnection>;

export const ModelAccount = z.object({
  exchanges: z.array(ModelExchange).meta({ description: 'In the order they began.' }),
  connections: z.array(HostConnection),
  usage: z.array(
    z.object({
      role: ModelRole,
      model: z.string(),
      answeredBy: z.string().optional(),
      requests: z.number(),
      replayed: z
        .number()
        .optional()
        .meta({ description: 'Requests that got a recorded answer. Absent if there were none.' }),
      behind: z
        .object({
          id: z.string().meta({ description: "The provider's name for the model." }),
          at: z
            .string()
            .optional()
            .meta({ description: 'A hash of its address, or of the file it answers from.' }),
        })
        .optional()
        .meta({ description: 'What stood behind the name. Absent if recorded answers did.' }),
      usage: Usage,
      pricesOf: z.string().optional().meta({ description: 'The date of the prices behind `usage.costUsd`.' }),
    }),
  ),
  modelMs: Millis.meta({ description: "Milliseconds with at least one request of the agent's in flight." }),
  failure: z.string().optional(),
  agent: z.object({
    acted: z.boolean(),
    modelFailure: z.string().optional(),
    lastFailure: z.string().optional().meta({
      description: "How the agent's last request failed, in the server's own words, whoever is at fault.",
    }),
  }),
});
export type ModelAccount = z.infer<typeof ModelAccount>;

export const ReplayedTrial = z
  .object({
    of: z.string().meta({ description: 'The batch, the trial or the cassette that was recorded.' }),
    answered: z.number().meta({ description: 'Requests that got a recorded answer.' }),
    forkedAt: z.number().optional().meta({
      description: 'Of a fork: how many requests of the trial that it was forked from are replayed.',
    }),
    fromHarness: z.string().optional().meta({
      description: 'Of a fork with `--harness`: the harness of the trial that it was forked from.',
    }),
    changed: z.number().optional().meta({
      description: "Of these, those in which the harness's own texts, its tools or its options had changed.",
    }),
    live: z.number().optional().meta({ description: 'Requests that a model answered. Absent for none.' }),
  })
  .meta({ description: 'Set if recorded answers took the place of a model. It is not a live result.' });

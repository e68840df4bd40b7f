import { z } from 'zod';
import { At, Millis, Sha256 } from './measures.ts';

export const UsedImage = z.object({
  name: z.string(),
  id: z.string().meta({ description: "The engine's id of the image." }),
  platform: z.string().meta({ description: 'What its programs are made for, such as linux/amd64.' }),
  digest: z.string().optional().meta({
    description: "Its digest in the registry that it came from. Absent for an engine's own image.",
  }),
});
export type UsedImage = z.infer<typeof UsedImage>;

export const EnvironmentStep = z
  .object({
    phase: z.enum(['build', 'install', 'prepare']),
    description: z.string(),
    image: z.string().optional().meta({
      description: 'The id of the image that the step gave. Absent if it ran in the sandbox itself.',
    }),
    volume: z.string().optional().meta({
      description: 'The name of the volume that the step filled, in place of an image.',
    }),
    startedAt: At.optional(),
    durationMs: Millis.optional(),
    exitCode: z.number().optional(),
    log: Sha256.optional().meta({
      description:
        'The blob with what the step printed. Absent if another agent ran it, or it printed nothing.',
    }),
  })
  .meta({
    description: 'A step of the environment, which trials share: it may have run long before this trial.',
  });
export type EnvironmentStep = z.infer<typeof EnvironmentStep>;

export const ServiceRecord = z
  .object({
    name: z.string(),
    image: z.string().meta({ description: 'The name of the image, or what it was built from.' }),
    imageId: z.string(),
    startedAt: At.optional(),
    healthyAfterMs: Millis.optional().meta({ description: 'Absent without a health check.' }),
    exitCode: z.number().optional().meta({ description: 'If it ended by itself.' }),
    outOfDisk: z.literal(true).optional().meta({
      description: 'It was ended because it wrote more than it may.',
    }),
    log: Sha256.optional().meta({
      description: 'The blob with what it printed; also an artifact. Absent if it printed nothing.',
    }),
    logTruncated: z.literal(true).optional(),
  })
  .meta({ description: 'A container that ran beside the sandbox.' });
export type ServiceRecord = z.infer<typeof ServiceRecord>;

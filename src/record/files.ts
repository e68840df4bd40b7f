import { z } from 'zod';
import { Sha256 } from './measures.ts';

const FileVersion = z.object({
  type: z.string().meta({ examples: ['file', 'folder', 'symlink'] }),
  mode: z.number(),
  byteSize: z.number().optional(),
  content: Sha256.optional().meta({ description: 'The blob with the text. Absent if it was not kept.' }),
  linkTarget: z.string().optional(),
});
export type FileVersion = z.infer<typeof FileVersion>;

export const FileChange = z
  .object({
    path: z.string(),
    kind: z.enum(['added', 'modified', 'deleted']),
    before: FileVersion.optional(),
    after: FileVersion.optional(),
    omitted: z.enum(['binary', 'large', 'room']).optional().meta({
      description:
        'Why a content was not kept: it is not text, it is too large, or the contents kept for this trial are.',
    }),
  })
  .meta({ description: 'What the agent did to one path of the workspace.' });
export type FileChange = z.infer<typeof FileChange>;

export const PathList = z.object({ paths: z.array(z.string()), count: z.number() });

export const LeftState = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('untouched') }),
    z.object({
      kind: z.literal('archive'),
      sha256: Sha256.meta({ description: 'The name of the file in the folder for workspaces.' }),
      byteSize: z.number().meta({ description: 'Bytes of the archive.' }),
      storedSize: z.number().meta({ description: 'Bytes of the file, which is compressed.' }),
    }),
    z.object({
      kind: z.literal('image'),
      imageId: z.string().meta({ description: "The engine's id of the image of the whole sandbox." }),
      storedSize: z.number().meta({ description: 'Bytes that were written in the sandbox.' }),
    }),
    z.object({ kind: z.literal('not-kept'), why: z.string() }),
  ])
  .meta({
    description:
      'What was kept of the state that the agent left, to grade it again. It may have been removed since.',
  });
export type LeftState = z.infer<typeof LeftState>;

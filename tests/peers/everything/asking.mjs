// SPDX-License-Identifier: Apache-2.0
// The tools and prompts that ask the client something before they answer.
//
// Each is written once, as rounds of input_required: on a modern request the client answers them in
// a retry, on a legacy session the SDK sends them as requests of its own and runs the handler again.
// An answer that is missing or does not fit is asked for again; "decline" and "cancel" end the call.
// requestState is signed and bound to its method, so a state that was tampered with is an error.
import { randomBytes } from 'node:crypto';
import { CLIENT_CAPABILITIES_META_KEY, createRequestStateCodec, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { z } from 'zod';

export const sealedState = createRequestStateCodec({ key: randomBytes(32), bind: ctx => ctx.mcpReq.method });

/** What the client of this request can do, in whichever era it said so. */
function capabilitiesOf(ctx, server) {
    return ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities() ?? {};
}

const says = said => ({ content: [{ type: 'text', text: said }] });

function form(message, properties, required = Object.keys(properties)) {
    return inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required } });
}

function sample(prompt, maxTokens = 100) {
    return inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens });
}

/** An answer of the right kind; for an accepted form, one that has every member that was required. */
function fits(request, answer) {
    switch (request.method) {
    case 'elicitation/create':
        return answer.kind === 'elicit' && (answer.action !== 'accept' ||
            request.params.requestedSchema.required.every(name => answer.content?.[name] !== undefined));
    case 'sampling/createMessage':
        return answer.kind === 'sampling';
    default:
        return answer.kind === 'roots';
    }
}

/** Asks for whatever of `inputRequests` was not answered yet, else gives the answers to `done`. */
async function ask(ctx, inputRequests, done, state) {
    const answers = {};
    for (const [key, request] of Object.entries(inputRequests)) {
        answers[key] = inputResponse(ctx.mcpReq.inputResponses, key);
        if (!fits(request, answers[key])) {
            return inputRequired({
                inputRequests,
                ...(state === undefined ? {} : { requestState: await sealedState.mint(state, ctx) })
            });
        }
    }
    const refused = Object.values(answers).find(answer => answer.kind === 'elicit' && answer.action !== 'accept');
    return refused ? says(`The user chose to ${refused.action}.`) : done(answers);
}

const textOf = answer => [answer.result.content].flat().map(block => block.text ?? '').join('');
const rootsOf = answer => answer.roots.map(root => root.uri).join(', ');
const nameForm = message => form(message, { name: { type: 'string' } });

/** Shows the answer to a form as it came, declined or not. */
async function showForm(ctx, prefix, request) {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
    if (answer.kind !== 'elicit') {
        return inputRequired({ inputRequests: { answer: request } });
    }
    return says(`${prefix}: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
}

const defaultsForm = form('Please check these values', {
    name: { type: 'string', description: 'Name', default: 'John Doe' },
    age: { type: 'integer', description: 'Age', default: 30 },
    score: { type: 'number', description: 'Score', default: 95.5 },
    status: { type: 'string', description: 'Status', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', description: 'Verified', default: true }
}, []);

const choices = ['option1', 'option2', 'option3'];
const titled = what => ['First', 'Second', 'Third'].map((title, at) => ({ const: `value${at + 1}`, title: `${title} ${what}` }));
const enumsForm = form('Please choose', {
    untitledSingle: { type: 'string', enum: choices },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: choices } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } }
}, []);

/** Two rounds: the second is known by the signed state that the first one minted. */
async function askTwice(_, ctx) {
    const state = ctx.mcpReq.requestState();
    if (state?.step !== 2) {
        const first = { step1: nameForm('Step 1: What is your name?') };
        return ask(ctx, first, ({ step1 }) => askColour(ctx, step1.content.name), { step: 1 });
    }
    return askColour(ctx, state.name);
}

function askColour(ctx, name) {
    const second = { step2: form('Step 2: What is your favorite color?', { color: { type: 'string' } }) };
    return ask(ctx, second, ({ step2 }) => says(`${name} likes ${step2.content.color}.`), { step: 2, name });
}

/** Only what this client can answer; with nothing in common it says so. */
function askWhatIsPossible(_, ctx, { server }) {
    const can = capabilitiesOf(ctx, server);
    const requests = {
        ...(can.sampling ? { greeting: sample('Generate a greeting') } : {}),
        ...(can.elicitation ? { user_name: nameForm('What is your name?') } : {}),
        ...(can.roots ? { client_roots: inputRequired.listRoots() } : {})
    };
    if (Object.keys(requests).length === 0) {
        return says('The client can answer nothing.');
    }
    return ask(ctx, requests, () => says(`Asked for ${Object.keys(requests).join(', ')}.`));
}

function confirm(message, said) {
    return (_, ctx) => ask(ctx, { confirm: form(message, { ok: { type: 'boolean' } }) }, () =>
        ctx.mcpReq.requestState() ? says(said) : { isError: true, ...says('The request state did not come back.') }, { confirmed: false });
}

export const askingTools = {
    test_sampling: {
        description: 'Asks the model of the client',
        inputSchema: z.object({ prompt: z.string().describe('The prompt to send to the LLM') }),
        run: ({ prompt }, ctx) =>
            ask(ctx, { answer: sample(prompt) }, ({ answer }) => says(`LLM response: ${textOf(answer)}`))
    },
    test_elicitation: {
        description: 'Asks the user of the client',
        inputSchema: z.object({ message: z.string().describe('The message to show the user') }),
        run: ({ message }, ctx) => showForm(ctx, 'User response', form(message, {
            username: { type: 'string', description: "User's response" },
            email: { type: 'string', description: "User's email address" }
        }))
    },
    test_elicitation_sep1034_defaults: {
        description: 'Asks with a default for every kind of value',
        run: (_, ctx) => showForm(ctx, 'Elicitation completed', defaultsForm)
    },
    test_elicitation_sep1330_enums: {
        description: 'Asks with every form of enum',
        run: (_, ctx) => showForm(ctx, 'Elicitation completed', enumsForm)
    },
    test_streaming_elicitation: {
        description: 'Asks on a stream that has begun',
        run: async (_, ctx) => {
            await ctx.mcpReq.log('info', 'about to ask', 'everything');
            return showForm(ctx, 'Elicitation completed', nameForm('What is your name?'));
        }
    },
    test_missing_capability: {
        description: 'Needs a client that can sample; the SDK refuses the others',
        run: (_, ctx) => ask(ctx, { answer: sample('Say anything') }, () => says('The client can sample.'))
    },
    test_input_required_result_elicitation: {
        description: 'Asks for a name and greets it',
        run: (_, ctx) => ask(ctx, { user_name: nameForm('What is your name?') }, ({ user_name }) =>
            says(`Hello, ${user_name.content.name}!`))
    },
    test_input_required_result_sampling: {
        description: 'Asks the model for a capital',
        run: (_, ctx) => ask(ctx, { capital_question: sample('What is the capital of France?') }, ({ capital_question }) =>
            says(textOf(capital_question)))
    },
    test_input_required_result_list_roots: {
        description: 'Asks for the roots of the client',
        run: (_, ctx) => ask(ctx, { client_roots: inputRequired.listRoots() }, ({ client_roots }) =>
            says(`The roots are ${rootsOf(client_roots)}.`))
    },
    test_input_required_result_request_state: {
        description: 'Wants its state back',
        run: confirm('Please confirm', 'state-ok')
    },
    test_input_required_result_tampered_state: {
        description: 'Wants its state back as it was',
        run: confirm('Please confirm', 'The state is sound.')
    },
    test_input_required_result_multiple_inputs: {
        description: 'Asks for three things at once',
        run: (_, ctx) => ask(ctx, {
            user_name: nameForm('What is your name?'),
            greeting: sample('Generate a greeting', 50),
            client_roots: inputRequired.listRoots()
        }, ({ user_name, greeting, client_roots }) =>
            says(`${textOf(greeting)} ${user_name.content.name}, at ${rootsOf(client_roots)}.`), { asked: 3 })
    },
    test_input_required_result_multi_round: { description: 'Asks twice, one after the other', run: askTwice },
    test_input_required_result_capabilities: { description: 'Asks for what the client can do', run: askWhatIsPossible }
};

export const askingPrompts = {
    test_input_required_result_prompt: {
        description: 'A prompt that asks for its context',
        run: (_, ctx) => {
            const request = form('What context should the prompt use?', { context: { type: 'string' } });
            const answer = inputResponse(ctx.mcpReq.inputResponses, 'user_context');
            if (!fits(request, answer)) {
                return inputRequired({ inputRequests: { user_context: request } });
            }
            const said = answer.action === 'accept' ? answer.content.context : `(${answer.action})`;
            return { messages: [{ role: 'user', content: { type: 'text', text: `Use this context: ${said}` } }] };
        }
    }
};

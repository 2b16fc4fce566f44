// SPDX-License-Identifier: Apache-2.0
// What one legacy session sent, so that a client may come back for it with Last-Event-ID.
//
// An id is "<stream>_<number>", the number counting within the session: it names its stream, and
// only that stream's later events are replayed.  The oldest events go when there are too many.

const MAX_EVENTS = 1000;

export class EventStore {
    #events = [];
    #last = 0;

    async storeEvent(streamId, message) {
        const number = ++this.#last;
        this.#events.push({ streamId, number, message });
        if (this.#events.length > MAX_EVENTS) {
            this.#events.shift();
        }
        return `${streamId}_${number}`;
    }

    #parse(eventId) {
        const at = eventId.lastIndexOf('_');
        return { streamId: eventId.slice(0, at), number: Number(eventId.slice(at + 1)) };
    }

    async getStreamIdForEventId(eventId) {
        const { streamId, number } = this.#parse(eventId);
        return streamId && number <= this.#last ? streamId : undefined;
    }

    async replayEventsAfter(lastEventId, { send }) {
        const { streamId, number } = this.#parse(lastEventId);
        const later = this.#events.filter(event => event.streamId === streamId && event.number > number);
        for (const event of later) {
            // A priming event is stored as an empty message: it has nothing to say twice.
            if (Object.keys(event.message).length > 0) {
                await send(`${event.streamId}_${event.number}`, event.message);
            }
        }
        return streamId;
    }
}
